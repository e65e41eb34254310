// Shows what the server tells, as text and never as markup. The token comes after the # of the address, which browsers send to no one; it stays in this tab.
'use strict'

const at = (id) => document.getElementById(id)
const STORE = 'ralph-fleet-token'
const ORDER = [['needs-person', 'Needs you'], ['runs', 'Runs'], ['lands', 'Lands'], ['proven', 'Proven'], ['parked', 'Parked'], ['waits', 'Waits'], ['landed', 'Landed'], ['cancelled', 'Cancelled']]
const WORDS = { land: 'Land', back: 'Send back', release: 'Release', steer: 'Steer', pause: 'Pause', resume: 'Resume', cancel: 'Cancel' }
const ASKS = { back: 'Why does it go back?', steer: 'What should the agent hear?' }

let token = ''
let shown = null
let stop = null
const cards = new Map()
const groups = new Map()

function element(name, className, text) {
  const made = document.createElement(name)
  if (className) made.className = className
  if (text !== undefined) made.textContent = text
  return made
}

// Changes only what differs: what a person has selected or opened stays as it is.
function put(node, text) {
  const wanted = text === undefined || text === null ? '' : String(text)
  if (node.textContent !== wanted) node.textContent = wanted
}

// A line of parts with dots between them, which breaks between parts only.
function parts(node, text) {
  if (node.textContent === text) return
  node.replaceChildren(...text.split(' · ').flatMap((part, n) => [n ? ' · ' : '', element('span', 'part', part)]))
}

function reveal(node, text) {
  node.hidden = !text
  if (text && node.childElementCount === 0) put(node, text)
}

function state(name, text) {
  at('line').className = `pill ${name}`
  put(at('line'), text)
}

function ago(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`
}

function say(text, isBad) {
  at('said').className = isBad ? 'notice bad' : 'notice good'
  reveal(at('said'), text)
}

async function act(command) {
  try {
    const answer = await fetch('/act', {
      method: 'POST', cache: 'no-store', body: JSON.stringify(command),
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    })
    const told = await answer.json()
    say(told.said || told.error, !answer.ok)
    return answer.ok
  } catch {
    say('The fleet could not be reached: nothing was changed, as far as is known.', true)
    return false
  }
}

// A word first, where the command takes one; a second tap, where it ends something.
function button(name, id) {
  const made = element('button', '', WORDS[name])
  made.type = 'button'
  made.addEventListener('click', async () => {
    if (ASKS[name]) return ask(made, name, id)
    if (name === 'cancel' && !made.classList.contains('sure')) {
      made.classList.add('sure')
      put(made, 'Cancel it?')
      setTimeout(() => { made.classList.remove('sure'); put(made, WORDS[name]) }, 5000)
      return undefined
    }
    made.disabled = true
    await act({ act: name, job: id })
    made.disabled = false
    return undefined
  })
  return made
}

function ask(beside, name, id) {
  const place = beside.parentElement.parentElement
  const old = place.querySelector('form')
  if (old) {
    old.remove()
    if (old.dataset.act === name) return
  }
  const form = element('form')
  form.dataset.act = name
  const input = element('input')
  input.placeholder = ASKS[name]
  input.setAttribute('aria-label', ASKS[name])
  input.maxLength = 4000
  const row = element('span', 'row')
  row.append(input, element('button', '', WORDS[name]))
  form.append(row)
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (input.value.trim() && await act({ act: name, job: id, text: input.value })) form.remove()
  })
  place.append(form)
  input.focus()
}

function card(id) {
  const made = { root: element('article'), name: element('b'), title: element('span'), meta: element('span', 'meta'), doing: element('p', 'doing'), acts: element('div', 'acts'), key: '' }
  made.root.dataset.job = id
  const head = element('div', 'head')
  const title = element('span', 'title')
  title.append(made.name, made.title)
  head.append(title, made.meta)
  made.line = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  made.line.setAttribute('viewBox', '0 0 1000 10')
  made.line.setAttribute('preserveAspectRatio', 'none')
  made.line.setAttribute('aria-hidden', 'true')
  made.more = element('details')
  made.more.append(element('summary', '', 'Commands'), made.acts)
  made.root.append(head, made.doing, made.line, made.more)
  return made
}

function meta(job) {
  const parts = []
  if (job.is_paused) parts.push('paused')
  if (job.iterations) parts.push(`#${job.iterations}`)
  if (job.cost) parts.push(job.cost)
  if (job.since) parts.push(ago(Date.now() - job.since))
  return parts.join(' · ')
}

function draw(line, spans, from, to) {
  const key = JSON.stringify([spans, from, to])
  if (line.dataset.key === key) return
  line.dataset.key = key
  const whole = Math.max(1, to - from)
  const bars = spans.map(([phase, begin, end]) => {
    const bar = document.createElementNS('http://www.w3.org/2000/svg', 'rect')
    const x = Math.max(0, (begin - from) / whole * 1000)
    bar.setAttribute('class', phase)
    bar.setAttribute('x', x.toFixed(1))
    bar.setAttribute('y', '0')
    bar.setAttribute('height', '10')
    bar.setAttribute('width', Math.max(3, Math.min(1000, ((end === null ? to : end) - from) / whole * 1000) - x).toFixed(1))
    return bar
  })
  line.replaceChildren(...bars)
  line.toggleAttribute('hidden', bars.length === 0)
  line.style.display = bars.length ? '' : 'none'
}

function showJob(job, from, to) {
  const made = cards.get(job.id) || card(job.id)
  cards.set(job.id, made)
  made.root.className = job.state
  put(made.name, job.name)
  put(made.title, job.title === job.name ? '' : job.title)
  put(made.meta, meta(job))
  made.doing.hidden = !job.doing
  put(made.doing, job.doing)
  draw(made.line, job.line, from, to)
  const key = job.acts.join()
  if (made.key !== key) {
    made.key = key
    made.acts.replaceChildren(...job.acts.map((name) => button(name, job.id)))
  }
  made.more.hidden = job.acts.length === 0
  return made.root
}

function group(name, title) {
  if (!groups.has(name)) {
    const root = element('section')
    const heading = element('h2', name, title)
    const count = element('span', 'count')
    heading.append(count)
    const list = element('div')
    root.append(heading, list)
    groups.set(name, { root, count, list })
    // In their order, however late one comes.
    const after = ORDER.slice(ORDER.findIndex(([other]) => other === name) + 1).map(([other]) => groups.get(other)).find(Boolean)
    at('jobs').insertBefore(root, after ? after.root : null)
  }
  return groups.get(name)
}

function arrange(list, nodes) {
  nodes.forEach((node, n) => { if (list.children[n] !== node) list.insertBefore(node, list.children[n] || null) })
  while (list.children.length > nodes.length) list.lastElementChild.remove()
}

function showJobs(told) {
  // Where something goes on, the time lines end now; each second is soon enough.
  const now = Math.floor(Date.now() / 1000) * 1000
  const goesOn = told.jobs.some((job) => job.line.some((span) => span[2] === null))
  const to = Math.max(told.to || 0, goesOn ? now : 0)
  for (const [name, title] of ORDER) {
    const jobs = told.jobs.filter((job) => job.state === name)
    if (jobs.length === 0 && !groups.has(name)) continue
    const place = group(name, title)
    place.root.hidden = jobs.length === 0
    put(place.count, jobs.length)
    arrange(place.list, jobs.map((job) => showJob(job, told.from || to, to)))
  }
  const ids = new Set(told.jobs.map((job) => job.id))
  for (const id of cards.keys()) if (!ids.has(id)) cards.delete(id)
}

function show(told) {
  reveal(at('problem'), told.problem)
  if (told.problem) return
  shown = told
  put(at('way'), `${told.list} → ${told.target}`)
  parts(at('summary'), told.summary)
  document.title = `${told.summary} · ralph fleet`
  at('budget').hidden = false
  put(at('money'), told.limit ? `${told.money} · limit ${told.limit}` : told.money)
  at('share').hidden = !told.limit
  at('share').value = told.limit_micros ? Math.min(1, told.spent_micros / told.limit_micros) : 0
  reveal(at('trouble'), told.trouble && `Landing waits: ${told.trouble}`)
  reveal(at('short'), told.short && `No job is begun: ${told.short}`)
  at('paused').hidden = !told.is_paused
  at('control').hidden = !told.allows_control
  put(at('all'), told.is_paused ? 'Resume all' : 'Pause all')
  showJobs(told)
  reveal(at('hidden'), told.hidden && `… and ${told.hidden} more`)
  at('next').hidden = !told.bring
  put(at('base'), told.base)
  put(at('bring'), told.bring)
  at('figures').hidden = false
  reveal(at('backlog'), told.backlog)
  at('flaky').hidden = told.flaky.length === 0
  at('gates').replaceChildren(...told.flaky.map((row) => element('li', '', `${row.times} × ${row.gate}`)))
  at('events').replaceChildren(...told.events.map((line) => element('li', '', line)))
  at('legend').hidden = !told.jobs.some((job) => job.line.length)
}

// Server-sent events, read by hand: the browser's own reader cannot send a header, and a token in the address would be written down by others.
async function listen() {
  if (stop) stop.abort()
  const own = new AbortController()
  stop = own
  for (let wait = 500; !own.signal.aborted; wait = Math.min(wait * 2, 10000)) {
    try {
      const answer = await fetch('/events', { cache: 'no-store', signal: own.signal, headers: { Authorization: `Bearer ${token}` } })
      if (answer.status === 401) return askForToken('The token is missing, or wrong: it is another one each time that `ralph fleet serve` starts.')
      if (!answer.ok) {
        reveal(at('problem'), (await answer.json()).error)
        throw new Error(`answered ${answer.status}`)
      }
      state('live', 'live')
      reveal(at('problem'), '')
      wait = 250
      if (await read(answer.body.getReader()) === 'over') return state('gone', 'ended')
    } catch (error) {
      if (own.signal.aborted) return undefined
    }
    state('gone', 'connection lost')
    await new Promise((done) => setTimeout(done, wait))
  }
  return undefined
}

async function read(reader) {
  const decoder = new TextDecoder()
  for (let rest = ''; ;) {
    const { value, done } = await reader.read()
    if (done) return 'gone'
    const parts = (rest + decoder.decode(value, { stream: true })).split('\n\n')
    rest = parts.pop()
    for (const part of parts) {
      if (part.startsWith('event: over')) return 'over'
      if (part.startsWith('data: ')) show(JSON.parse(part.slice(6)))
    }
  }
}

function askForToken(why) {
  sessionStorage.removeItem(STORE)
  state('gone', 'no token')
  reveal(at('problem'), why)
  at('ask').hidden = false
  at('token').focus()
}

function begin(given) {
  token = given.trim()
  at('ask').hidden = true
  reveal(at('problem'), '')
  if (!/^[0-9a-f]+$/.test(token)) return askForToken(token ? 'This is no token.' : 'This page needs its token.')
  sessionStorage.setItem(STORE, token)
  state('', 'connecting')
  return listen()
}

// Out of the address, so that it gets into no bookmark and no picture.
function takeToken() {
  const given = location.hash.slice(1)
  if (given) history.replaceState(null, '', location.pathname)
  return given || sessionStorage.getItem(STORE) || ''
}

at('ask').addEventListener('submit', (event) => { event.preventDefault(); begin(at('token').value.replace(/^.*#/, '')) })
at('control').addEventListener('submit', async (event) => {
  event.preventDefault()
  if (at('task').value.trim() && await act({ act: 'add', text: at('task').value })) at('task').value = ''
})
at('all').addEventListener('click', () => act({ act: shown.is_paused ? 'resume' : 'pause' }))
addEventListener('hashchange', () => { if (location.hash) begin(takeToken()) })
// A phone that wakes up has lost its line without being told.
addEventListener('pageshow', (event) => { if (event.persisted) begin(takeToken()) })
setInterval(() => { if (shown) showJobs(shown) }, 1000)
begin(takeToken())
