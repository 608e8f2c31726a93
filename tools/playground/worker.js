// pipeweaver's search beside the page: a question in, its answer out.
'use strict';
importScripts('search.js');
const ready = PipeweaverSearch();
async function answered(question) {
  try {
    return (await ready).ccall('pipeweaver_search', 'string', ['string'], [question]);
  } catch (error) {
    return JSON.stringify({error: `the search cannot answer here: ${error.message || error}`});
  }
}
onmessage = async ({data: {number, question}}) => postMessage({number, answer: await answered(question)});
