// The page's server, in the page: what it asks of /ui/ (service/ui/ui_routes.hpp) is answered by commands that are
// WebAssembly, each question in a worker of its own. What is larger than this can plan is the program's.
'use strict';
(() => {
  const runs = new Map(), kept = 32, asks = globalThis.fetch.bind(globalThis), told = ['doing', 'rung'];
  let last = 0;
  const json = (body, status = 200) => new Response(JSON.stringify(body), {status, headers: {'Content-Type': 'application/json'}});
  const wrong = (status, message) => json({error: {message}}, status);

  // Calls said(line) for each line on stderr; the end: {status, out, files}.
  function command(words, files, said) {
    const worker = new Worker('planner_worker.js');
    const ended = new Promise((done, failed) => {
      worker.onmessage = ({data}) => {
        if (data.line !== undefined) said(data.line);
        else if (data.failed !== undefined) failed(new Error(`the page cannot answer this, the program may: ${data.failed}`));
        else done(data);
      };
      worker.onerror = () => failed(new Error('the planner cannot be loaded here'));
    }).finally(() => worker.terminate());
    worker.postMessage({words, files});
    return {ended, stop: () => worker.terminate()};
  }

  async function forms() {
    const lines = [];
    try {
      const {status, out} = await command(['forms'], {}, line => lines.push(line)).ended;
      return status === 0 ? new Response(out) : wrong(500, lines.join('\n'));
    } catch (error) { return wrong(500, error.message); }
  }

  function wordsOf({command, options = {}, operand}) {
    const words = [command];
    for (const [name, value] of Object.entries(options)) if (value !== false) words.push(`--${name}`, ...(value === true ? [] : [String(value)]));
    if (command !== 'check') words.push('--out', 'out');
    words.push('--json', '--progress-json', '--progress-every', '250');
    return operand === undefined ? words : [...words, '--', operand];
  }

  function begin(question) {
    const run = {begun: performance.now(), events: [], wake: () => {}, end: null, out: '', files: {}}, number = ++last;
    const tell = (name, data) => {
      run.events.push(`event: ${name}\ndata: ${JSON.stringify({...data, millis: Math.round(performance.now() - run.begun)})}\n\n`);
      run.wake();
    };
    const finish = (status, files = {}, out = '') => {
      if (run.end !== null) return;
      Object.assign(run, {out, files, end: status});
      tell('end', {status, files: Object.keys(files).sort()});
    };
    const going = command(wordsOf(question), question.files || {}, line => {
      let object = null;
      try { object = JSON.parse(line); } catch { /* a line for people */ }
      const name = object && told.find(one => one in object);
      const said = line === 'pipeweaver: out of memory' ? `${line}, of which a page has 2 GiB: ask the program` : line;
      name ? tell(name, object) : tell('lines', {text: `${said}\n`});
    });
    run.stop = () => { going.stop(); finish(-1); };
    going.ended.then(({status, files, out}) => finish(status, files, out),
                     error => { tell('lines', {text: `pipeweaver: ${error.message}\n`}); finish(1); });
    runs.set(number, run);
    for (const [old, {end}] of runs) if (runs.size > kept && end !== null) runs.delete(old);
    return json({run: number}, 201);
  }

  function events(run) {
    let at = 0;
    const text = new TextEncoder();
    return new Response(new ReadableStream({
      async pull(to) {
        while (at === run.events.length && run.end === null) await new Promise(done => { run.wake = done; });
        if (at < run.events.length) to.enqueue(text.encode(run.events[at++]));
        if (at === run.events.length && run.end !== null) to.close();
      },
    }));
  }

  async function answer(path, {method = 'GET', body} = {}) {
    if (path === '/ui/forms') return forms();
    if (path === '/ui/play') {
      try { return json(await searchPlay(JSON.parse(body))); } catch (error) { return wrong(400, error.message); }
    }
    if (path === '/ui/runs') return begin(JSON.parse(body));
    const [, number, what, query] = /^\/ui\/runs\/(\d+)(?:\/(\w+))?(?:\?(.*))?$/.exec(path) || [], run = runs.get(Number(number));
    if (!run) return wrong(404, 'there is no such run any more');
    if (method === 'DELETE') {
      if (query) return wrong(400, 'a search in the page takes no word while it runs: give it a budget, or cancel');
      run.stop();
      return json({run: Number(number)});
    }
    if (what === 'events') return events(run);
    if (what === 'answer') return new Response(run.out);
    const name = new URLSearchParams(query).get('name');
    if (what !== 'files' || !Object.hasOwn(run.files, name)) return wrong(404, 'the run has no such file');
    const file = new Response(run.files[name]);
    return name.endsWith('.gz') ? new Response(file.body.pipeThrough(new DecompressionStream('gzip'))) : file;
  }

  globalThis.fetch = (path, options) => typeof path === 'string' && path.startsWith('/ui/') ? answer(path, options) : asks(path, options);
})();
