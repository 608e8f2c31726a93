// Draws schedules on a canvas, and what ranks hold in memory below. Tasks are {rank, start, end, kind, name, micro,
// stage, why}: seconds or any other unit; memory is, by rank, a list of [time, amount].
'use strict';
const Chart = (() => {
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const fill = {F: '--forward', B: '--backward', I: '--backward', W: '--weight', R: '--recompute'};
  const row = 22, gutter = 58, axis = 20;

  const most = (all, of, least = 0) => all.reduce((before, one) => Math.max(before, of(one)), least);

  function shown(time, unit) {
    if (unit !== 's') return `${+time.toPrecision(4)}${unit ? ' ' + unit : ''}`;
    const [value, name] = time >= 1 ? [time, 's'] : time >= 1e-3 ? [time * 1e3, 'ms'] : [time * 1e6, 'us'];
    return `${value.toPrecision(4)} ${name}`;
  }

  // One picture: its canvas, what is seen of it, and what lies under a point.
  function make(host, {unit = '', label = 'schedule', span = 0, onPick = null} = {}) {
    const canvas = document.createElement('canvas');
    const tip = Object.assign(document.createElement('div'), {className: 'tip', hidden: true});
    tip.setAttribute('role', 'status');
    canvas.tabIndex = 0;
    canvas.setAttribute('role', 'img');
    host.replaceChildren(canvas, tip);
    let tasks = [], memory = [], ranks = 1, end = 1, from = 0, to = 1, grabbed = null, chosen = 0, picked = null, drawnAt = null, wide = 240;

    const width = () => wide;
    const x = time => gutter + (time - from) / (to - from) * (width() - gutter - 4);
    const time = at => from + (at - gutter) / (width() - gutter - 4) * (to - from);

    function draw() {
      const hasMemory = memory.length > 0, height = ranks * row + axis + (hasMemory ? 76 : 0), scale = devicePixelRatio || 1;
      drawnAt = host.clientWidth;
      wide = Math.max(240, drawnAt);
      const g = canvas.getContext('2d'), [across, down] = [Math.round(wide * scale), Math.round(height * scale)];
      if (canvas.width !== across || canvas.height !== down) {
        [canvas.width, canvas.height] = [across, down];
        [canvas.style.width, canvas.style.height] = [`${wide}px`, `${height}px`];
      }
      g.setTransform(1, 0, 0, 1, 0, 0);
      g.clearRect(0, 0, across, down);
      const colors = Object.fromEntries(Object.entries(fill).map(([kind, name]) => [kind, css(name)]));
      g.scale(scale, scale);
      g.font = '11px system-ui, sans-serif';
      g.textBaseline = 'middle';
      const text = css('--text'), soft = css('--soft'), idle = css('--idle');
      for (let r = 0; r < ranks; ++r) {
        g.fillStyle = idle;
        g.fillRect(gutter, r * row + 1, width() - gutter - 4, row - 3);
        g.fillStyle = soft;
        g.fillText(`rank ${r}`, 2, r * row + row / 2);
      }
      g.save();
      g.beginPath();
      g.rect(gutter, 0, width() - gutter - 4, height);
      g.clip();
      for (const task of tasks) {
        const left = x(task.start), right = x(task.end);
        if (right < gutter || left > width()) continue;
        g.fillStyle = colors[task.kind] || colors.F;
        g.globalAlpha = task.faint ? 0.55 : 1;
        g.fillRect(left, task.rank * row + 1, Math.max(0.6, right - left - 0.6), row - 3);
        g.globalAlpha = 1;
        if (right - left > 15) {
          g.fillStyle = '#fff';
          g.fillText(String(task.micro), left + 3, task.rank * row + row / 2);
        }
        if (task === grabbed?.task || task === picked) {
          g.strokeStyle = text;
          g.lineWidth = 2;
          g.strokeRect(left, task.rank * row + 2, right - left, row - 5);
        }
      }
      g.restore();
      g.fillStyle = soft;
      const marks = width() < 500 ? 2 : 4;
      for (let i = 0; i <= marks; ++i) {
        const at = from + (to - from) * i / marks;
        g.textAlign = i === 0 ? 'left' : i === marks ? 'right' : 'center';
        g.fillText(shown(at, unit), x(at), ranks * row + 9);
      }
      g.textAlign = 'left';
      if (hasMemory) drawMemory(g, ranks * row + axis);
    }

    function drawMemory(g, top) {
      const all = most(memory, points => most(points, point => point[1])) || 1, accent = css('--accent'), line = css('--line');
      memory.forEach((points, r) => {
        g.strokeStyle = r === chosen ? accent : line;
        g.lineWidth = r === chosen ? 1.8 : 1;
        g.beginPath();
        let before = null;
        for (const [at, amount] of points) {
          const y = top + 66 - 60 * amount / all, left = Math.max(gutter, Math.min(width() - 4, x(at)));
          if (before === null) g.moveTo(left, y);
          else { g.lineTo(left, before); g.lineTo(left, y); }
          before = y;
        }
        g.stroke();
      });
      g.fillStyle = css('--soft');
      const peak = most(memory[chosen] || [], point => point[1]);
      g.fillText(`memory`, 2, top + 12);
      g.fillText(`rank ${chosen}`, 2, top + 28);
      g.fillText(unit === 's' ? `${(peak / 2 ** 30).toFixed(1)} GiB` : String(+peak.toPrecision(3)), 2, top + 44);
    }

    function under(event) {
      const box = canvas.getBoundingClientRect(), rank = Math.floor((event.clientY - box.top) / row);
      const at = time(event.clientX - box.left);
      return {rank, at, task: tasks.find(task => task.rank === rank && task.start <= at && at < task.end)};
    }

    function zoom(factor, at = (from + to) / 2) {
      const length = Math.min(end, Math.max(end / 5000, (to - from) * factor));
      from = Math.max(0, Math.min(end - length, at - (at - from) * length / (to - from)));
      to = from + length;
      draw();
    }
    function move(share) {
      const length = to - from;
      from = Math.max(0, Math.min(end - length, from + share * length));
      to = from + length;
      draw();
    }

    canvas.addEventListener('wheel', event => {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaY) > Math.abs(event.deltaX) && document.activeElement !== canvas) return;
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.25 : 0.8, under(event).at);
    }, {passive: false});
    canvas.addEventListener('keydown', event => {
      const act = {'+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1.4), ArrowLeft: () => move(-0.2),
                   ArrowRight: () => move(0.2), ArrowUp: () => choose(chosen - 1), ArrowDown: () => choose(chosen + 1),
                   0: () => zoom(1e9), '.': () => pick(1), ',': () => pick(-1), Enter: () => zoomTo(picked),
                   '>': () => shift(1), '<': () => shift(-1)}[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    function choose(rank) {
      picked = null;
      tip.hidden = true;
      chosen = Math.max(0, Math.min(ranks - 1, rank));
      draw();
    }
    const ofChosen = () => tasks.filter(task => task.rank === chosen).sort((a, b) => a.start - b.start);
    // The next pass of the chosen rank, in view and told.
    function pick(by) {
      const all = ofChosen(), at = all.indexOf(picked);
      picked = all[at < 0 ? Math.max(0, all.findIndex(task => task.end > from)) : Math.max(0, Math.min(all.length - 1, at + by))] || null;
      if (!picked) return;
      if (picked.start < from || picked.end > to) move((picked.start - from) / (to - from) - 0.1);
      tell(picked, Math.min(Math.max(gutter, x(picked.start)), width()), (picked.rank + 1) * row);
      draw();
    }
    // The picked pass, one place earlier or later.
    function shift(by) {
      const all = ofChosen(), at = all.indexOf(picked), other = all[at + by];
      if (!onPick || !picked || !other) return;
      onPick(picked, by > 0 ? other.start : other.start - 1e-9);
    }
    function zoomTo(task) {
      if (!task) return;
      const length = Math.min(end, Math.max(end / 5000, 6 * (task.end - task.start)));
      from = Math.max(0, Math.min(end - length, (task.start + task.end - length) / 2));
      to = from + length;
      draw();
    }
    function tell(one, left, top) {
      tip.hidden = false;
      tip.textContent = `${one.name}: ${shown(one.start, unit)} to ${shown(one.end, unit)}, takes ${shown(one.end - one.start, unit)}${one.why ? '\n' + one.why : ''}`;
      tip.style.left = `${Math.max(0, Math.min(left + 12, width() - 240))}px`;
      tip.style.top = `${top + 14}px`;
    }
    canvas.addEventListener('dblclick', event => zoomTo(under(event).task));
    canvas.addEventListener('blur', () => { tip.hidden = true; });
    canvas.addEventListener('pointercancel', () => { grabbed = null; });
    canvas.addEventListener('pointerdown', event => {
      const found = under(event);
      if (found.rank < ranks) choose(found.rank);
      grabbed = {...found, from, to, left: event.clientX};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointermove', event => {
      const found = under(event);
      const box = host.getBoundingClientRect();
      if (found.task && (!grabbed || grabbed.task)) tell(found.task, event.clientX - box.left, event.clientY - box.top);
      else tip.hidden = true;
      if (grabbed && !(grabbed.task && onPick)) {
        const length = grabbed.to - grabbed.from, by = (event.clientX - grabbed.left) / (width() - gutter) * length;
        from = Math.max(0, Math.min(end - length, grabbed.from - by));
        to = from + length;
        draw();
      }
    });
    canvas.addEventListener('pointerup', event => {
      const was = grabbed;
      grabbed = null;
      if (was?.task && onPick && Math.abs(event.clientX - was.left) > 4) onPick(was.task, under(event).at);
      draw();
    });
    canvas.addEventListener('pointerleave', () => { tip.hidden = true; });

    // Drawn anew where its place or the colours have changed, as long as it is on the page.
    new ResizeObserver(() => { if (drawnAt !== null && host.clientWidth && host.clientWidth !== drawnAt) draw(); }).observe(host);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', function repaint() {
      if (host.isConnected && drawnAt !== null) draw();
      else scheme.removeEventListener('change', repaint);
    });

    return {
      show(next, {keepsZoom = false} = {}) {
        tasks = next.tasks;
        picked = picked && (tasks.find(task => task.rank === picked.rank && task.name === picked.name) || null);
        memory = next.memory || [];
        ranks = next.ranks;
        end = Math.max(span, next.end) || 1;
        if (!keepsZoom || to > end) [from, to] = [0, end];
        canvas.setAttribute('aria-label', `${label}: ${ranks} ranks, ${tasks.length} passes, ends at ${shown(next.end, unit)}`);
        draw();
      },
      spanTo(value) { span = value; },
      zoom, move, draw, canvas,
    };
  }

  // Tasks and memory of a trace that a plan or an emulation wrote.
  function ofTrace(text) {
    const events = JSON.parse(text).traceEvents, tasks = [], memory = [], ranks = new Map();
    for (const one of events)
      if (one.ph === 'M' && one.name === 'process_name') {
        const rank = /rank (\d+)$/.exec(one.args.name);
        if (rank) ranks.set(one.pid, +rank[1]);
      }
    for (const one of events) {
      const rank = ranks.get(one.pid);
      if (rank === undefined) continue;
      if (one.ph === 'C' && one.name === 'memory') (memory[rank] ||= []).push([one.ts / 1e6, one.args.bytes]);
      const pass = one.ph === 'X' && /^PP:(\d+)([FBIW])(\d+)(?:\.(\d+))?$/.exec(one.name);
      if (pass) tasks.push({rank, start: one.ts / 1e6, end: (one.ts + one.dur) / 1e6, kind: pass[2], stage: +pass[1],
                            micro: +pass[3], item: +(pass[4] || 0), name: one.args?.task || one.name});
    }
    explain(tasks, 's');
    const count = most([...ranks.values()], rank => rank + 1, 1), hasMemory = memory.length > 0;
    return {tasks, memory: hasMemory ? Array.from({length: count}, (_, rank) => memory[rank] || []) : [], ranks: count,
            end: most(tasks, task => task.end)};
  }

  // What each pass waited for: the pass that ended last of the one before it on its rank and the one whose result it takes.
  function explain(tasks, unit) {
    const at = new Map(tasks.map(task => [`${task.stage}${task.kind === 'I' ? 'B' : task.kind}${task.micro}.${task.item || 0}`, task]));
    const last = new Map();
    for (const task of [...tasks].sort((a, b) => a.start - b.start)) {
      const before = last.get(task.rank), gap = task.start - (before ? before.end : 0);
      const key = (stage, kind) => at.get(`${stage}${kind}${task.micro}.${task.item || 0}`);
      const maker = task.kind === 'F' ? key(task.stage - 1, 'F') : task.kind === 'W' ? key(task.stage, 'B') : key(task.stage + 1, 'B') || key(task.stage, 'F');
      if (gap > 1e-9 && maker && maker.end > (before ? before.end : 0))
        task.why = `its rank waited ${shown(gap, unit)} for ${maker.name} of rank ${maker.rank}`;
      else if (gap > 1e-9) task.why = `its rank waited ${shown(gap, unit)}`;
      else if (before && maker && maker.end < task.start) task.why = `was ready ${shown(task.start - maker.end, unit)} before, behind ${before.name}`;
      last.set(task.rank, task);
    }
  }

  // The same, by the schedule problem whose tasks they are: whatever it is that a pass takes, and how long that travels.
  function explainBy(problem, tasks, unit) {
    const ids = new Map(problem.tasks.map(task => [task.label, task.id])), passes = new Map(tasks.map(task => [ids.get(task.name), task]));
    const inputs = problem.tasks.map(() => []), last = new Map();
    for (const [from, to, lag] of problem.edges) if (passes.has(from)) inputs[to].push({maker: passes.get(from), lag: lag / 1e9});
    for (const task of [...tasks].sort((a, b) => a.start - b.start)) {
      delete task.why;  // which stages alone said
      const before = last.get(task.rank), gap = task.start - (before ? before.end : 0), ready = one => one.maker.end + one.lag;
      const late = (inputs[ids.get(task.name)] || []).reduce((latest, one) => (latest && ready(latest) >= ready(one) ? latest : one), null);
      if (gap > 1e-9 && late)
        task.why = `its rank waited ${shown(gap, unit)} for ${late.maker.name} of rank ${late.maker.rank}${late.lag ? `, whose result travels ${shown(late.lag, unit)}` : ''}`;
      else if (gap > 1e-9) task.why = `its rank waited ${shown(gap, unit)}`;
      else if (before && late && ready(late) < task.start - 1e-9) task.why = `was ready ${shown(task.start - ready(late), unit)} before, behind ${before.name}`;
      last.set(task.rank, task);
    }
  }

  return {make, ofTrace, explain, explainBy, shown};
})();
