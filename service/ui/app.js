// The page: forms made from the commands' own options, runs and what came of them.
'use strict';
const TABS = {
  plan: {command: 'plan', title: 'Plan a step', go: 'Plan',
         fields: ['model', 'cluster', 'dataset', 'batch', 'microbatches', 'tp', 'pp', 'target', 'now', 'budget'],
         first: {model: 'dip-vlm-s', cluster: 'h100-sxm:16', dataset: 'vlm-mix'}},
  check: {command: 'check', title: 'Check a launch', go: 'Check', pastes: true, fields: ['cluster', 'model', 'set', 'dataset', 'framework'],
          first: {cluster: 'h100-sxm:64'}},
  rent: {command: 'recommend', title: 'What to rent', go: 'Find', fields: ['model', 'dataset', 'global-batch', 'tokens', 'days', 'budget-usd', 'clusters', 'gpus'],
         first: {model: 'dip-vlm-s', dataset: 'vlm-mix', 'global-batch': '256', tokens: '300B', days: '60', clusters: 'h100-sxm', gpus: '64,128'}},
};
const state = {forms: null, token: sessionStorage.getItem('token') || '', tab: 'plan', files: {}, going: new Set()};
const tabsHere = () => Object.keys(TABS).filter(tab => $(`panel-${tab}`));  // a page may leave some out
const mostBytes = 15 * 2 ** 20;  // of a question: the server takes 16 MiB

// ---- the server

async function ask(path, {method = 'GET', body} = {}) {
  const headers = state.token ? {Authorization: `Bearer ${state.token}`} : {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {method, headers, body: body === undefined ? undefined : JSON.stringify(body)});
  } catch { throw new Error('the server does not answer: has it ended?'); }
  if (response.status === 401) {
    if (!$('token').open) $('token').showModal();
    throw new Error('the server asks for its token');
  }
  if (!response.ok) {
    const text = await response.text();
    let message = text;
    try { message = JSON.parse(text).error.message; } catch { /* no JSON: as it is */ }
    throw new Error(message);
  }
  return response;
}

// Calls told(name, data) for each event until the stream ends.
async function follow(path, told) {
  const reader = (await ask(path)).body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = '';;) {
    const {done, value} = await reader.read();
    if (done) return;
    rest += value;
    for (let at; (at = rest.indexOf('\n\n')) >= 0; rest = rest.slice(at + 2)) {
      const name = /^event: (.*)$/m.exec(rest.slice(0, at)), data = /^data: (.*)$/m.exec(rest.slice(0, at));
      if (name && data) told(name[1], JSON.parse(data[1]));
    }
  }
}

// A question run to its end: {status, text of stderr, files, answer}. Calls told(what it does, share that is done) and
// climbed(rung) meanwhile.
async function runs(question, {told = () => {}, climbed = () => {}, begun = () => {}} = {}) {
  const {run} = await (await ask('/ui/runs', {method: 'POST', body: question})).json();
  state.going.add(run);
  begun(run);
  const result = {run, status: -1, lines: '', files: [], millis: 0, answer: null};
  let hasEnded = false;
  await follow(`/ui/runs/${run}/events`, (name, data) => {
    result.millis = data.millis;
    if (name === 'lines') { result.lines += data.text; told(data.text.trim().split('\n').pop(), null, data.millis); }
    if (name === 'doing') told(data.doing, data.share, data.millis);
    if (name === 'beat') told(null, null, data.millis);
    if (name === 'rung') climbed(data);
    if (name !== 'end') return;
    hasEnded = true;
    state.going.delete(run);
    Object.assign(result, {status: data.status, files: data.files});
  });
  if (!hasEnded) throw new Error('the server told no end of it: has it ended?');
  const text = result.status < 0 ? '' : await (await ask(`/ui/runs/${run}/answer`)).text();
  try { result.answer = JSON.parse(text); } catch { result.answer = null; }
  return result;
}

// ---- forms

function fieldsOf(tab) {
  const all = state.forms.commands.find(one => one.name === TABS[tab].command).fields.filter(one => one.name);
  const byName = new Map(all.map(one => [one.name, one]));
  const first = TABS[tab].fields.filter(name => byName.has(name)).map(name => byName.get(name));
  return [first, all.filter(one => !first.includes(one))];
}

const isChoice = field => field.takes_value && field.choices.length > 0 && !/[A-Z]/.test(field.kind);

function control(tab, field) {
  const id = `${tab}-${field.name}`;
  let input;
  if (!field.takes_value) input = make('input', {type: 'checkbox'});
  else if (isChoice(field)) {
    input = make('select', {}, make('option', {value: '', textContent: 'as by default'}),
                 ...field.choices.map(one => make('option', {value: one, textContent: one})));
  } else {
    input = make('input', {type: 'text', placeholder: field.kind, autocomplete: 'off', spellcheck: false});
    if (field.choices.length) input.setAttribute('list', `${id}-list`);
  }
  Object.assign(input, {id, name: field.name});
  input.setAttribute('aria-describedby', `${id}-about ${id}-wrong`);
  const list = field.choices.length && !isChoice(field)
    ? make('datalist', {id: `${id}-list`}, ...field.choices.map(one => make('option', {value: one}))) : null;
  const wrong = make('div', {id: `${id}-wrong`, className: 'wrong', role: 'alert'});
  const about = make('div', {id: `${id}-about`, className: 'about', textContent: field.about});
  const label = make('label', {htmlFor: id, textContent: field.name.replaceAll('-', ' ')});
  input.addEventListener('focus', () => about.classList.add('whole'));  // and stays so: nothing moves under the hand
  const line = make('div', {className: 'line'}, input);
  if (field.takes_files && field.takes_value) line.append(dropButton(input));
  const host = make('div', {className: field.takes_value ? 'field' : 'field flag'}, label, line, list, about, wrong);
  host.dataset.find = `${field.name} ${field.about}`.toLowerCase();
  if (field.takes_files) dropOn(host, input);
  return host;
}

// The text of a file, unzipped.
async function textOf(file) {
  const start = new Uint8Array(await file.slice(0, 2).arrayBuffer()), isZip = start[0] === 0x1f && start[1] === 0x8b;
  const bytes = await new Response(isZip ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file).arrayBuffer();
  if (bytes.byteLength > mostBytes) throw new Error('is larger than 15 MiB: ask on the command line');
  try { return new TextDecoder('utf-8', {fatal: true}).decode(bytes); } catch { throw new Error('is no text'); }
}

async function take(input, file) {
  const wrong = $(`${input.id}-wrong`);
  wrong.textContent = '';
  try {
    const text = await textOf(file);
    if (input.tagName === 'TEXTAREA') input.value = text;
    else input.value = fileGiven(input.name, file.name, text);
  } catch (error) { wrong.textContent = `${file.name}: ${error.message}`; }
  changed();
}

// The value of an option that names this file.
function fileGiven(option, fileName, text) {
  const name = fileName.replace(/\.gz$/, '').replace(/[^\w.-]/g, '_').replace(/^[.-]+|^out$/, '').slice(-80) || 'file';
  state.files[name] = text;
  if (option !== 'model' && option !== 'teacher') return name;
  try {
    const config = JSON.parse(text);
    return config.architectures || config.model_type || config._class_name ? `hf:${name}` : name;
  } catch { return name; }
}

function dropButton(input) {
  const picker = make('input', {type: 'file', hidden: true, tabIndex: -1});
  picker.setAttribute('aria-hidden', 'true');
  picker.addEventListener('change', () => {
    if (picker.files[0]) take(input, picker.files[0]);
    picker.value = '';  // the same one again, after an edit, is a change
  });
  const button = make('button', {type: 'button', className: 'quiet', textContent: 'file…', title: 'or drop it here'});
  button.setAttribute('aria-label', `file for ${input.name || 'the launch'}`);
  button.addEventListener('click', () => picker.click());
  return make('span', {}, picker, button);
}

function dropOn(host, input) {
  host.addEventListener('dragover', event => { event.preventDefault(); host.classList.add('over'); });
  host.addEventListener('dragleave', () => host.classList.remove('over'));
  host.addEventListener('drop', event => {
    event.preventDefault();
    host.classList.remove('over');
    if (event.dataTransfer.files[0]) take(input, event.dataTransfer.files[0]);
  });
}

function buildForm(tab) {
  const [first, rest] = fieldsOf(tab), about = TABS[tab], form = $(`${tab}-form`);
  const groups = new Map();
  for (const field of rest) groups.set(field.group, [...(groups.get(field.group) || []), field]);
  const find = make('input', {type: 'search', placeholder: 'find an option', id: `${tab}-find`});
  find.setAttribute('aria-label', 'find an option');
  const others = make('details', {className: 'all'}, make('summary', {textContent: `All options (${rest.length} more)`}), find,
                      ...[...groups].map(([name, fields]) => make('fieldset', {}, make('legend', {textContent: name}),
                                                                  ...fields.map(field => control(tab, field)))));
  find.addEventListener('input', () => {
    for (const one of others.querySelectorAll('.field')) one.hidden = !one.dataset.find.includes(find.value.toLowerCase());
    for (const one of others.querySelectorAll('fieldset')) one.hidden = !one.querySelector('.field:not([hidden])');
  });
  const paste = about.pastes ? pasteField() : null;
  form.replaceChildren(make('h2', {textContent: about.title}), ...(paste ? [paste] : []), ...first.map(field => control(tab, field)), others,
                       make('div', {className: 'go'}, make('button', {type: 'submit', className: 'main', textContent: about.go}),
                            make('span', {className: 'wrong', id: `${tab}-wrong`, role: 'alert'})));
  for (const [name, value] of Object.entries(about.first)) form.elements[name].value = value;
  form.addEventListener('submit', event => { event.preventDefault(); start(tab); });
  form.addEventListener('input', changed);
  form.addEventListener('change', changed);
}

function pasteField() {
  const area = make('textarea', {id: 'check-script', rows: 9, spellcheck: false,
                                 placeholder: 'a launch script, or a configuration in YAML or JSON; drop the file here'});
  area.setAttribute('aria-describedby', 'check-script-wrong');
  const host = make('div', {className: 'field'},
                    make('div', {className: 'line'}, make('label', {htmlFor: 'check-script', textContent: 'script or configuration'}), dropButton(area)),
                    area, make('div', {id: 'check-script-wrong', className: 'wrong', role: 'alert'}));
  dropOn(host, area);
  return host;
}

const nameOfPaste = text => (/^\s*\{/.test(text) ? 'launch.json' : /^\s*#!|^\s*(export |torchrun|python|srun|deepspeed|accelerate|swift|megatron|NPROC)|\\\n\s*--/m.test(text) ? 'launch.sh' : 'launch.yaml');

function questionOf(tab) {
  const form = $(`${tab}-form`), question = {command: TABS[tab].command, options: {}, files: {}};
  for (const input of form.elements) {
    if (!input.name || input.type === 'file') continue;
    if (input.type === 'checkbox') { if (input.checked) question.options[input.name] = true; }
    else if (input.value.trim()) question.options[input.name] = input.value.trim();
  }
  const script = TABS[tab].pastes && $('check-script').value;
  if (script && script.trim()) {
    question.operand = nameOfPaste(script);
    question.files[question.operand] = script.endsWith('\n') ? script : script + '\n';
  }
  for (const value of Object.values(question.options))
    for (const [name, text] of Object.entries(state.files))
      if (typeof value === 'string' && value.split(',').some(one => one === name || one === `hf:${name}`)) question.files[name] = text;
  return question;
}

const quoted = text => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
function commandOf(question) {
  const words = ['pipeweaver', question.command];
  for (const [name, value] of Object.entries(question.options)) words.push(`--${name}`, ...(value === true ? [] : [quoted(value)]));
  if (question.command === 'plan' || question.command === 'solve') words.push('--out', 'out');
  if (question.operand) words.push(quoted(question.operand));
  return words.join(' ');
}

// A link that holds the whole question, while its files are small: what of the address comes after the '#'.
function linkOf(tab) {
  const text = JSON.stringify(tab === 'play' ? {tab, setting: state.play.setting()} : {tab, question: questionOf(tab)});
  return text.length > 60_000 ? null
    : btoa(Array.from(new TextEncoder().encode(text), byte => String.fromCharCode(byte)).join('')).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
function openLink() {
  if (location.hash.length < 2) return false;
  let link;
  try {
    const bytes = Uint8Array.from(atob(location.hash.slice(1).replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0));
    link = JSON.parse(new TextDecoder().decode(bytes));
  } catch { return false; }
  if (link?.tab === 'play') state.play.set(link.setting || {});
  else if (Object.hasOwn(TABS, link?.tab)) fill(link.tab, link.question || {});
  else return false;
  choose(link.tab);
  return true;
}
function fill(tab, {options = {}, operand, files = {}}) {
  for (const input of $(`${tab}-form`).elements) {
    if (!input.name) continue;
    if (input.type === 'checkbox') input.checked = options[input.name] === true;
    else input.value = options[input.name] ?? '';
    if (input.value || input.checked) input.closest('details')?.setAttribute('open', '');
  }
  if (TABS[tab].pastes) $('check-script').value = files[operand] ?? '';
  for (const [name, value] of Object.entries(files)) if (name !== operand) state.files[name] = String(value);
}

let writesAddress = 0;
function changed() {
  if (state.tab in TABS) $(`${state.tab}-command`).textContent = commandOf(questionOf(state.tab));
  clearTimeout(writesAddress);
  writesAddress = setTimeout(() => history.replaceState(null, '', `${location.pathname}#${linkOf(state.tab) ?? ''}`), 200);
}

// ---- a run

function clearWrong(tab) {
  for (const one of document.querySelectorAll(`#${tab}-form .wrong`)) one.textContent = '';
  for (const one of $(`${tab}-form`).elements) one.removeAttribute('aria-invalid');
}

// The field that a line of the command line is about: it names the option, or says the value.
function fieldOf(tab, text) {
  if (TABS[tab].pastes && /^launch\.(sh|yaml|json)\b|^missing FILE/.test(text)) return $('check-script');
  const inputs = [...$(`${tab}-form`).elements].filter(one => one.name);
  const named = name => inputs.find(one => one.name === name);
  for (const [, name] of text.matchAll(/--([a-z][a-z0-9-]*)/g)) if (named(name)) return named(name);
  for (const [, name] of text.matchAll(/(?:^|: )([a-z][a-z0-9-]*)(?=: )/g)) if (named(name)) return named(name);
  const [, kind, value] = /\b(model|cluster|data set) '([^']*)'/.exec(text) || [];
  const says = one => one.value.split(',').some(word => word === value || word.startsWith(`${value}:`));
  const names = kind ? [kind.replace(' ', ''), `${kind}s`, 'teacher'] : [];
  const ofKind = names.map(named).filter(Boolean);
  const file = Object.keys(state.files).find(name => text.startsWith(name));
  return ofKind.find(says) || ofKind[0] || (file && inputs.find(one => one.value.includes(file))) || null;
}

// The command line's line, beside the field that it names.
function showWrong(tab, line) {
  const text = line.replace(/^pipeweaver: /, ''), input = fieldOf(tab, text);
  if (!input) { $(`${tab}-wrong`).textContent = text; return; }
  input.closest('details')?.setAttribute('open', '');
  input.setAttribute('aria-invalid', 'true');
  $(`${input.id}-wrong`).textContent = text;
  input.focus();
}

async function start(tab) {
  const question = questionOf(tab), out = $(`${tab}-out`);
  clearWrong(tab);
  const line = make('p', {className: 'doing', role: 'status', textContent: 'begins'}), bar = make('progress', {max: 100});
  bar.setAttribute('aria-label', 'share of the work that is done');
  bar.removeAttribute('value');
  const best = tab === 'check' ? null : make('button', {type: 'button', textContent: 'Take the best so far', disabled: true});
  const cancel = make('button', {type: 'button', className: 'cancel', textContent: 'Cancel', disabled: true});
  const climbing = make('div', {}), rungs = [];
  out.replaceChildren(make('div', {className: 'card'}, line, bar, make('div', {className: 'go'}, cancel, best), climbing));
  out.scrollIntoView({block: 'nearest'});
  const button = $(`${tab}-form`).querySelector('.main');
  button.disabled = true;
  let isCancelled = false;
  const end = (run, how) => ask(`/ui/runs/${run}${how}`, {method: 'DELETE'}).catch(error => { line.textContent = error.message; });
  try {
    if (JSON.stringify(question).length > mostBytes) throw new Error('more than 15 MiB of files: ask on the command line');
    const result = await runs(question, {
      told(text, share, millis) {
        if (text && !best?.disabled) line.textContent = text;
        if (typeof share === 'number') bar.value = 100 * share;
        line.title = `${(millis / 1000).toFixed(1)} s`;
      },
      climbed(rung) {
        if (!rungs.length) climbing.append(make('h3', {textContent: 'The ladder as it climbs'}), table(rungHeads, []));
        const row = tableRow(rungCells(rung));
        if (rungs[rung.place]) rungs[rung.place].replaceWith(row);
        else climbing.querySelector('tbody').append(row);
        rungs[rung.place] = row;
      },
      begun(run) {
        cancel.onclick = () => { isCancelled = true; end(run, ''); };
        cancel.disabled = false;
        if (!best) return;
        best.onclick = () => { line.textContent = 'finishing with the best so far'; best.disabled = true; end(run, '?best=1'); };
        best.disabled = false;
      },
    });
    const wrong = result.lines.trim().split('\n').filter(one => one.startsWith('pipeweaver: ')).pop();
    if (isCancelled && !result.answer) {
      out.replaceChildren(make('p', {className: 'soft', role: 'status', textContent: `cancelled after ${(result.millis / 1000).toFixed(1)} s`}));
      button.disabled = false;
      button.focus();
    } else if (!result.answer) {
      out.replaceChildren();
      showWrong(tab, wrong || (result.status === -1 ? 'was ended by the system, most likely for want of memory' : result.lines || `ended with status ${result.status}`));
    } else show(tab, question, result);
  } catch (error) {
    out.replaceChildren();
    showWrong(tab, error.message);
  } finally {
    button.disabled = false;
  }
}

// ---- answers

const seconds = ns => Chart.shown(ns / 1e9, 's');
const gib = bytes => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
const steps = ns => `${(ns / 1e9).toFixed(3)} s`;  // as the ladder of the command line
const times = ratio => `${ratio.toFixed(3)}x`;
const finer = bytes => `${(bytes / 2 ** 30).toFixed(2)} GiB`;
const tableRow = cells => make('tr', {className: cells.mark ? 'marked' : ''}, ...cells.map(one => make('td', {}, one ?? '')));
function table(heads, rows) {
  return make('div', {className: 'wide', tabIndex: 0, role: 'region', ariaLabel: 'table'}, make('table', {},
    make('thead', {}, make('tr', {}, ...heads.map(one => make('th', {scope: 'col', textContent: one})))),
    make('tbody', {}, ...rows.map(tableRow))));
}
function copyButton(text, name) {
  const button = make('button', {type: 'button', className: 'quiet', textContent: name});
  button.addEventListener('click', async () => {
    try { await navigator.clipboard.writeText(text()); button.textContent = 'copied'; } catch { button.textContent = 'cannot copy here'; }
    setTimeout(() => { button.textContent = name; }, 1500);
  });
  return button;
}

const fileOf = (run, name) => ask(`/ui/runs/${run}/files?name=${encodeURIComponent(name)}`);

async function download(run, name) {
  const blob = await (await fileOf(run, name)).blob();
  const link = make('a', {href: URL.createObjectURL(blob), download: name.split('/').pop().replace(/\.gz$/, '')});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function filesOf(result) {
  if (!result.files.length) return null;
  return make('details', {}, make('summary', {textContent: `Files (${result.files.length})`}), make('ul', {className: 'files'}, ...result.files.map(name => {
    const button = make('button', {type: 'button', className: 'quiet', textContent: name});
    const said = make('span', {className: 'wrong', role: 'alert'});
    button.addEventListener('click', () => download(result.run, name).catch(error => { said.textContent = error.message; }));
    return make('li', {}, button, said);
  })));
}

function show(tab, question, result) {
  const cards = {plan: planCards, check: checkCards, rent: rentCards}[tab](question, result);
  const tools = make('div', {className: 'go'}, copyButton(() => commandOf(question), 'copy the command'));
  const link = linkOf(tab);
  if (link) tools.append(copyButton(() => `${location.origin}${location.pathname}#${link}`, 'copy a link to the question'));
  const json = make('details', {}, make('summary', {textContent: 'The whole answer (JSON)'}),
                    make('pre', {tabIndex: 0, textContent: JSON.stringify(result.answer, null, 1).slice(0, 200_000)}));
  $(`${tab}-out`).replaceChildren(...cards, make('div', {className: 'card'}, tools, filesOf(result), json));
}

const rungHeads = ['rung', 'way', 'step', 'over now', 'tok/s/GPU', 'fullest rank'];
function rungCells(one) {
  const isNothing = Boolean(one.why_nothing), said = isNothing ? `nothing: ${one.why_nothing}` : one.way || '';
  const needs = !isNothing && one.needs ? make('div', {className: 'soft', textContent: one.needs}) : null;
  const numbers = isNothing || !one.step_ns ? ['', '', '', '']
    : [steps(one.step_ns), one.over_now ? times(one.over_now) : '', one.tokens_per_second_per_gpu ? one.tokens_per_second_per_gpu.toFixed(0) : '',
       one.peak_bytes ? `${(one.peak_bytes / 2 ** 30).toFixed(1)} of ${gib(one.usable_bytes)}` : ''];
  return [one.rung, make('div', {}, said, needs), ...numbers];
}

function planCards(question, result) {
  const plan = result.answer, head = plan.headline;
  const rungs = plan.ladder.concat(plan.beyond.filter(one => one.rung === head?.rung));
  const big = make('div', {className: 'card'}, make('h3', {textContent: 'Do'}));
  if (head) {
    const rung = rungs.find(one => one.rung === head.rung) || {};
    big.append(make('p', {className: 'big', textContent: `${head.rung}: ${steps(head.step_ns)}`}),
               make('p', {textContent: [head.compared && `${times(head.compared.over)} over ${head.compared.rung} (${steps(head.compared.step_ns)})`, head.over_now && `${times(head.over_now)} over now`].filter(Boolean).join(', ')}),
               make('ol', {}, ...(rung.steps || []).map(one => make('li', {textContent: one}))));
  }
  if (plan.headline?.room?.is_at_risk) big.append(make('p', {className: 'bad', textContent: `memory at risk: ${gib(plan.headline.room.left_bytes)} of ${gib(plan.headline.room.memory_bytes)} are left where shapes vary`}));
  if (plan.left_out?.length) big.append(make('p', {className: 'bad', textContent: `left out: ${plan.left_out.map(one => one.what || one).join('; ')}`}));
  const rows = rungs.map(one => Object.assign(rungCells(one), {mark: one.rung === head?.rung}));
  const ladder = make('div', {className: 'card'}, make('h3', {textContent: 'The ladder'}), table(rungHeads, rows),
                      make('p', {className: 'soft', textContent: [typeof plan.gap === 'number' && `gap to the bound ${percent(plan.gap)}`, typeof plan.mfu === 'number' && `MFU ${percent(plan.mfu)}`].filter(Boolean).join(', ')}));
  const cards = [big, ladder, besideCard(question, result)];
  if (result.files.includes('report.html')) cards.push(reportCard(result));
  return cards;
}

function reportCard(result) {
  const open = make('button', {type: 'button', textContent: 'Show the report'}), said = make('span', {className: 'wrong', role: 'alert'});
  const card = make('div', {className: 'card'}, make('h3', {textContent: 'Report'}), open, said);
  open.addEventListener('click', async () => {
    try {
      const text = await (await fileOf(result.run, 'report.html')).text();
      // Its scripts may draw, and reach nothing of this page.
      open.replaceWith(make('iframe', {title: 'report', sandbox: 'allow-scripts', src: URL.createObjectURL(new Blob([text], {type: 'text/html'}))}));
    } catch (error) { said.textContent = error.message; }
  });
  return card;
}

// Words of a command line as the tool prints it.
const wordsOf = text => [...text.matchAll(/'((?:[^']|'\\'')*)'|(\S+)/g)].map(one => one[2] ?? one[1].replaceAll("'\\''", "'"));

// Two rungs' schedules, each as its emulate command gives it; the searched one as the plan wrote it.
function besideCard(question, result) {
  const traces = result.files.filter(one => /(^|replica-\d+\/)trace\.json\.gz$/.test(one)), told = one => `${one.rung}: ${steps(one.step_ns)}`;
  const rungs = result.answer.ladder.filter(one => one.step_ns && !one.why_nothing && (one.command || one.rung === 'schedule')).flatMap(one => (one.command
    ? [{...one, text: told(one)}]
    : traces.map(file => ({...one, file, text: traces.length > 1 ? `${told(one)}, ${file.split('/')[0].replace(/-0*(?=\d)/, ' ')}` : told(one)}))));
  const card = make('div', {className: 'card'}, make('h3', {textContent: 'Two rungs side by side'}),
                    make('p', {className: 'soft', textContent: 'Drag to move; + and -, or the wheel on a chosen picture, to zoom; 0 for all; point at a pass for what it waits for.'}));
  const pictures = [];
  async function traceOf(rung) {
    if (rung.trace) return rung.trace;
    let run = result.run, name = rung.file;
    if (rung.command) {
      const words = wordsOf(rung.command), options = {};
      for (let i = 2; i < words.length; ++i) {
        const name = words[i].replace(/^--/, ''), isLast = i + 1 === words.length || words[i + 1].startsWith('--');
        options[name] = isLast ? true : words[++i];
      }
      const emulated = await runs({command: 'emulate', options: {...options, trace: 'passes'}, files: question.files});
      if (emulated.status !== 0) throw new Error(emulated.lines.trim().split('\n').pop());
      run = emulated.run;
      name = emulated.files.find(one => /(^|\/)trace\.json\.gz$/.test(one));
    }
    if (!name) throw new Error('it wrote no trace');
    const trace = Chart.ofTrace(await (await fileOf(run, name)).text()), problem = name.replace(/trace\.json\.gz$/, 'problem.json.gz');
    if (rung.file && result.files.includes(problem)) Chart.explainBy(await (await fileOf(run, problem)).json(), trace.tasks, 's');
    return rung.trace = trace;
  }
  rungs.slice(0, 2).forEach((_, place) => {
    const begins = place === 0 ? 0 : rungs.findIndex(one => one.rung === rungs.at(-1).rung);
    const choice = make('select', {id: `rung-${place}`}, ...rungs.map((one, i) => make('option', {value: i, textContent: one.text, selected: i === begins})));
    const host = make('div', {className: 'chart'}), said = make('p', {className: 'soft', role: 'status'});
    card.append(make('div', {className: 'line'}, make('label', {htmlFor: choice.id, textContent: place === 0 ? 'above' : 'below'}), choice), host, said);
    const chart = Chart.make(host, {unit: 's', label: 'schedule of a rung'});
    pictures.push({chart, trace: null});
    const load = async () => {
      said.textContent = 'emulates';
      try {
        const trace = await traceOf(rungs[choice.value]);
        pictures[place].trace = trace;
        const span = Math.max(...pictures.map(one => one.trace?.end || 0));
        for (const one of pictures) if (one.trace) { one.chart.spanTo(span); one.chart.show(one.trace); }
        said.textContent = '';
      } catch (error) { said.textContent = error.message; }
    };
    choice.addEventListener('change', load);
    card.addEventListener('loadpictures', load);
  });
  const go = make('button', {type: 'button', textContent: 'Draw them'});
  go.addEventListener('click', () => { go.remove(); card.dispatchEvent(new Event('loadpictures')); });
  if (rungs.length) card.append(go);
  return card;
}

function checkCards(question, result) {
  const check = result.answer, good = check.verdict === 'fits' || check.verdict === 'close';
  const card = make('div', {className: 'card'}, make('h3', {textContent: 'Verdict'}), make('p', {className: `big ${good ? 'good' : check.verdict === 'undecided' ? '' : 'bad'}`, textContent: check.verdict.replaceAll('-', ' ')}));
  if (check.memory) card.append(make('p', {textContent: `rank ${check.memory.fullest_rank} is the fullest: ${finer(check.memory.peak_bytes)} of ${finer(check.memory.usable_bytes)} usable`}));
  const texts = one => (typeof one === 'string' ? one : one.text || one.message || one.what || one.why || JSON.stringify(one));
  for (const [title, all] of [['rests on', check.open], ['broken rules', check.broken], ['would make it fit', check.changes], ['hazards', check.hazards], ['assumed', check.assumed], ['not read', check.not_read]])
    if (all?.length) card.append(make('h4', {textContent: title}), make('ul', {}, ...all.map(one => make('li', {textContent: texts(one)}))));
  return [card];
}

function rentCards(question, result) {
  const found = result.answer;
  if (!found.rows.length) return [make('div', {className: 'card'}, make('p', {className: 'big', textContent: 'nothing meets it'}), make('p', {textContent: found.none_meets || ''}))];
  const said = {fewest: 'fewest GPUs', cheapest: found.rows.some(one => one.usd !== null) ? 'cheapest' : 'fewest GPU-hours', fastest: 'fastest'};
  const names = row => Object.entries(found.answers).filter(([, one]) => one === row.row).map(([name]) => said[name] || name).join(', ');
  const warnings = row => [row.tied && 'tied', row.at_risk && 'at risk', row.little_room && 'little room'].filter(Boolean).join(', ');
  const degrees = ({tp, cp, pp, dp, zero}) => `tp ${tp} ${cp > 1 ? `cp ${cp} ` : ''}pp ${pp} dp ${dp} zero ${zero}`;
  const rows = found.rows.map(row => Object.assign(
    [names(row), row.cluster, String(row.gpus), degrees(row.layout), seconds(row.step_ns),
     row.days.toFixed(1), Math.round(row.gpu_hours).toLocaleString('en'), row.usd === null ? '' : Math.round(row.usd).toLocaleString('en'), percent(row.mfu), gib(row.memory_left_bytes), warnings(row),
     row.command ? copyButton(() => row.command, 'copy plan command') : ''], {mark: names(row) !== ''}));
  return [make('div', {className: 'card'}, make('h3', {textContent: 'What meets it'}),
               table(['which is', 'cluster', 'GPUs', 'layout', 'step', 'days', 'GPU-hours', 'USD', 'MFU', 'left', 'beware', 'how'], rows))];
}

// ---- the whole

function choose(tab) {
  state.tab = tab;
  for (const one of document.querySelectorAll('[role=tab]')) {
    const is = one.dataset.tab === tab;
    one.setAttribute('aria-selected', is);
    one.tabIndex = is ? 0 : -1;
    $(`panel-${one.dataset.tab}`).hidden = !is;
  }
  if (tab === 'play') state.play.draw();
}

async function boot() {
  const tabs = [...document.querySelectorAll('[role=tab]')];
  tabs.forEach((one, i) => {
    one.addEventListener('click', () => { choose(one.dataset.tab); changed(); });
    one.addEventListener('keydown', event => {
      const to = {ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = tabs[(to + tabs.length) % tabs.length];
      next.focus();
      choose(next.dataset.tab);
      changed();
    });
  });
  state.play = buildPlay($('panel-play').firstElementChild, {
    changed: () => state.forms && changed(),
    search: async question => (await ask('/ui/play', {method: 'POST', body: question})).json(),
  });
  $('token-form').addEventListener('submit', () => {
    state.token = $('token-text').value.trim();
    sessionStorage.setItem('token', state.token);
    setTimeout(load, 0);
  });
  await load();
}

async function load() {
  try {
    state.forms = await (await ask('/ui/forms')).json();
  } catch (error) {
    $('gone').hidden = false;
    $('gone').textContent = error.message;
    return;
  }
  $('gone').hidden = true;
  $('version').textContent = state.forms.version;
  for (const tab of tabsHere()) buildForm(tab);
  if (openLink()) changed();
  else choose(state.tab);
  for (const tab of tabsHere()) $(`${tab}-command`).textContent = commandOf(questionOf(tab));
}
addEventListener('hashchange', () => { if (state.forms && openLink()) changed(); });
// What nobody can see the end of any more need not go on.
addEventListener('pagehide', () => {
  const headers = state.token ? {Authorization: `Bearer ${state.token}`} : {};
  for (const run of state.going) fetch(`/ui/runs/${run}`, {method: 'DELETE', headers, keepalive: true}).catch(() => {});
});
boot();
