// pipeweaver's search beside the page: a question in, its answer out.
'use strict';
importScripts('search.js');
const ready = PipeweaverSearch();
onmessage = async event => {
  const search = await ready;
  postMessage({number: event.data.number, answer: search.ccall('pipeweaver_search', 'string', ['string'], [event.data.question])});
};
