// The search of Play, in a worker beside the page.
'use strict';
(() => {
  const waiting = new Map();
  let worker = null, last = 0;
  function search(question) {
    if (!worker) {
      worker = new Worker('worker.js');
      worker.onmessage = event => {
        const answer = JSON.parse(event.data.answer), {done, failed} = waiting.get(event.data.number);
        waiting.delete(event.data.number);
        answer.error ? failed(new Error(answer.error)) : done(answer);
      };
      worker.onerror = () => {
        for (const {failed} of waiting.values()) failed(new Error('the search cannot be loaded here'));
        waiting.clear();
        worker = null;  // it answers no more: the next question loads another
      };
    }
    const number = ++last;
    return new Promise((done, failed) => {
      waiting.set(number, {done, failed});
      worker.postMessage({number, question: JSON.stringify(question)});
    });
  }
  globalThis.searchPlay = search;
})();
