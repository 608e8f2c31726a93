// Play as a page: sliders, chapters and three pictures. What else the pages share, too.
'use strict';
const $ = id => document.getElementById(id);
const make = (tag, properties = {}, ...inside) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...inside.filter(one => one !== null && one !== undefined));
  return node;
};
const percent = share => `${(100 * share).toFixed(1)} %`;

const PLAY = [['ranks', 'ranks', 2, 16, 1, 4], ['micro', 'microbatches', 4, 64, 4, 16], ['chunks', 'chunks per rank', 1, 4, 1, 1], ['forward', 'forward, ms', 1, 50, 1, 10],
              ['backward', 'backward for inputs, ms', 1, 50, 1, 10], ['weight', 'backward for weights, ms', 1, 50, 1, 10], ['link', 'link, ms', 0, 20, 0.5, 0],
              ['unequal', 'how unequal microbatches are', 0, 1, 0.05, 0], ['most', 'memory, microbatches a rank (0: as 1F1B)', 0, 64, 1, 0]];
const CHAPTERS = [
  ['Why bubbles', 'A rank of a pipeline waits for its first microbatch, and at the end for the last to come back. More microbatches make the share of that smaller; GPipe holds the activations of all of them, 1F1B of as many as there are ranks behind.', {ranks: 4, micro: 8, chunks: 1, unequal: 0, split: false, link: 0, most: 0}],
  ['Why interleave', 'With two chunks a rank the first microbatch comes round in half of the time, so the bubble halves. It costs memory, and each boundary twice.', {ranks: 4, micro: 8, chunks: 2, unequal: 0, split: false, link: 0, most: 0}],
  ['Why unequal batches break it', 'Known schedules have one order for all microbatches. Where one has forty images and the next none, ranks wait for each other in the middle, where 1F1B has no slack. An order that is made for these sizes waits less.', {ranks: 8, micro: 32, chunks: 1, unequal: 0.7, split: false, link: 0, most: 0}],
  ['What a bound says', 'No schedule is shorter than the first wait of a rank, its work and what follows. The gap between the bound and a schedule is all that a better order could still bring: where it is small, look at the cut and the layout instead.', {ranks: 8, micro: 32, chunks: 1, unequal: 0.4, split: true, link: 1, most: 0}],
];
// `search` asks pipeweaver's own search, of tools/playground/play_search.hpp's form; `changed` hears of each new setting.
function buildPlay(host, {search = null, changed = () => {}} = {}) {
  const form = make('form', {className: 'card', id: 'play-form'}, make('h2', {textContent: 'Play'})), inputs = {};
  for (const [name, label, low, high, step, value] of PLAY) {
    const input = make('input', {type: 'range', id: `play-${name}`, min: low, max: high, step, value}), says = make('output', {htmlFor: `play-${name}`, textContent: value});
    inputs[name] = input;
    input.addEventListener('input', () => { says.textContent = input.value; asked(); });
    form.append(make('div', {className: 'slider'}, make('label', {htmlFor: input.id, textContent: label}), input, says));
  }
  const split = make('input', {type: 'checkbox', id: 'play-split'});
  split.addEventListener('change', () => asked());
  const again = make('button', {type: 'button', textContent: 'Other sizes'});
  form.append(make('div', {className: 'slider'}, make('label', {htmlFor: 'play-split', textContent: 'split backwards'}), split), make('div', {className: 'go'}, again));
  form.addEventListener('submit', event => event.preventDefault());
  const text = make('p', {className: 'chapter', role: 'status'});
  const chapters = make('div', {className: 'card'}, make('h3', {textContent: 'Four chapters'}), make('div', {className: 'go'}, ...CHAPTERS.map(([title, said, setting]) => {
    const button = make('button', {type: 'button', textContent: title});
    button.addEventListener('click', () => {
      put(setting);
      text.textContent = said;
      asked();
    });
    return button;
  })), text);
  const out = make('div', {id: 'play-out'}), note = make('p', {className: 'soft', role: 'status', id: 'play-note'});
  host.replaceChildren(form, make('div', {}, chapters, out, note));
  const names = ['gpipe', 'known', 'sought'], charts = {}, facts = {}, titles = {};
  let seed = 1, problem = null, shown = {}, later = 0;
  for (const name of names) {
    titles[name] = make('h3');
    facts[name] = make('p', {className: 'soft', id: `play-${name}-facts`});
    const place = make('div', {className: 'chart'});
    out.append(make('div', {className: 'card'}, titles[name], facts[name], place));
    charts[name] = Chart.make(place, {unit: 'ms', label: name, onPick: (task, at) => moved(name, task, at)});
  }
  again.addEventListener('click', () => { ++seed; asked(); });
  function asked() {
    draw();
    changed();
  }
  function put(setting) {
    for (const [name, input] of Object.entries(inputs)) {
      if (typeof setting[name] !== 'number') continue;
      input.value = setting[name];  // which keeps it within its bounds
      input.nextElementSibling.textContent = input.value;
    }
    split.checked = setting.split === true;
  }

  function tell(name, found, bound) {
    shown[name] = found;
    facts[name].textContent = found ? `${found.end.toFixed(1)} ms, bubble ${percent(found.bubble)}, at most ${found.peak.toFixed(1)} microbatches held, ${percent(found.end / bound - 1)} above the bound of ${bound.toFixed(1)} ms` : 'cannot run so';
    if (found) Chart.explain(found.tasks, 'ms');
  }
  function paint() {
    const span = Math.max(...names.map(name => shown[name]?.end || 0));
    for (const name of names) { charts[name].spanTo(span); charts[name].show(shown[name] || {tasks: [], memory: [], ranks: problem.ranks, end: 0}); }
  }
  function draw() {
    const begun = performance.now(), setting = {seed, split: split.checked};
    for (const name of Object.keys(inputs)) setting[name] = +inputs[name].value;
    problem = Play.problem(setting);
    const bound = Play.bound(problem), known = Play.oneForwardOneBackward(problem), gpipe = Play.judged(problem, Play.gpipe(problem));
    const megatron = known && Play.judged(problem, known), most = setting.most || megatron?.peak || problem.ranks * 1.5;
    titles.gpipe.textContent = 'GPipe';
    titles.known.textContent = problem.chunks > 1 ? 'interleaved 1F1B' : problem.split ? 'ZB-H1' : '1F1B';
    titles.sought.textContent = `sought here, at most ${most.toFixed(1)} microbatches a rank`;
    tell('gpipe', gpipe, bound);
    tell('known', megatron, bound);
    if (!megatron) facts.known.textContent = 'needs a multiple of the ranks as microbatches';
    const begin = known ? [known] : [];
    tell('sought', Play.search(problem, most, 0, begin), bound);
    paint();
    host.dataset.millis = (performance.now() - begun).toFixed(1);
    note.textContent = `drawn in ${host.dataset.millis} ms; drag a pass along its rank to put it elsewhere`;
    clearTimeout(later);
    later = setTimeout(() => sought(problem, most, begin, bound), 250);
  }
  // pipeweaver's own search where it can be asked, else more tries of the page's.
  async function sought(of, most, begin, bound) {
    let found = null;
    try {
      found = search && await search({ranks: of.ranks, chunks: of.chunks, sizes: of.size, forward: of.forward, backward: of.backward,
                                      weight: of.weight, link: of.link, split: of.split, most: most * (1 + 1e-6), seed: 1, rounds: 8});
    } catch (error) { note.textContent = error.message; }
    if (of !== problem) return;  // the sliders have moved on
    const lists = found?.lists?.map(list => list.map(([kind, stage, m]) => ({kind, stage, m})));
    const judged = lists && Play.judged(of, lists), least = Math.max(bound, found?.bound || 0);
    if (judged) {
      titles.sought.textContent = `pipeweaver's search, at most ${most.toFixed(1)} microbatches a rank`;
      tell('sought', judged, least);
    } else tell('sought', Play.search(of, most, 250, begin), bound);
    paint();
  }
  // A pass put elsewhere in its rank's order.
  function moved(name, task, at) {
    const before = shown[name];
    if (!before) return;
    clearTimeout(later);
    const lists = before.lists.map(list => [...list]), list = lists[task.rank], from = list.indexOf(task.pass);
    list.splice(from, 1);
    const starts = new Map(before.tasks.map(one => [one.pass, one.start]));
    const to = list.findIndex(pass => starts.get(pass) > at);
    list.splice(to < 0 ? list.length : to, 0, task.pass);
    const found = Play.judged(problem, lists);
    if (!found) { note.textContent = `${task.name} cannot lie there: ranks would wait for each other forever`; return; }
    const longer = found.end - before.end;
    tell(name, found, Play.bound(problem));
    paint();
    note.textContent = `${task.name} moved: the step is ${Math.abs(longer) < 1e-9 ? 'as long as before' : `${Math.abs(longer).toFixed(1)} ms ${longer > 0 ? 'longer' : 'shorter'}`}`;
  }
  return {
    draw,
    setting: () => ({...Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, +input.value])), split: split.checked, seed}),
    set(setting) {
      put(setting);
      seed = Number.isSafeInteger(setting.seed) ? setting.seed : 1;
    },
  };
}
