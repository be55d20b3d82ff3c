// Runs the JavaScript examples of a README one after the other, statement by statement, in one global scope.
//
// Usage: node verify_snippets.mjs LIST.json [--trial OUT.json]. Same list, trial and status as verify_snippets.py.
// Each statement is compiled on its own; what it declares becomes global, so that later examples build on earlier ones.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import net from 'node:net'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import util from 'node:util'
import { builtin, elements, frames, mounted, readable, saysThrows, shape, textFor } from './verify_dialects.mjs'

const here = path.dirname(new URL(import.meta.url).pathname)
const acorn = createRequire(import.meta.url)('acorn')
// A README shows the ESM and the CommonJS way in one block: that a name is declared twice is no error here.
const Lenient = acorn.Parser.extend(P => class extends P { raiseRecoverable () {} })
const AsyncFunction = (async () => {}).constructor
const LIMIT = 1000 * Number(process.env.VERIFY_SNIPPET_SECONDS || 20)
const words = process.argv.slice(2)
const option = name => (words.includes(name) ? words[words.indexOf(name) + 1] : undefined)
const trialFile = option('--trial')
const listed = JSON.parse(fs.readFileSync(words[0], 'utf8'))
const moved = Object.fromEntries((process.env.VERIFY_PORTS || '').split(',').filter(Boolean).map(p => p.split('=')))
const require = createRequire(path.join(process.cwd(), 'example.js'))
let current = null
let number = -1
const write = text => {
  if (current && current.said) current.said[number] = (current.said[number] || '') + text + '\n'
  fs.writeSync(1, text + '\n')
}
const trials = {}
// What blocked in an earlier trial, before something was fixed, or in the statement before, is not waited for as long.
const before = (() => { try { return JSON.parse(fs.readFileSync(trialFile, 'utf8')) } catch { return {} } })()
let quiet = false
let printed = ''
const servers = new Set()

const listen = net.Server.prototype.listen
net.Server.prototype.listen = function (...args) {
  const first = args[0]
  if (typeof first === 'object' && first && moved[first.port]) args[0] = { ...first, port: Number(moved[first.port]) }
  else if (moved[first]) args[0] = Number(moved[first])
  this.once('listening', () => servers.add(this))
  return listen.apply(this, args)
}

const fail = (error, at = number) => {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${util.inspect(error)}`
  const far = /ENOTFOUND|EAI_AGAIN|fetch failed|open '(https?:)/.test(text)  // a host that cannot be reached from here
  const kind = far ? 'ENOTFOUND' : error && error.code ? error.code : error instanceof Error ? error.name : 'thrown'
  const inside = /node_modules/.test(((error && error.stack) || '').split('\n').find(line => /^\s+at /.test(line)) || '')
  if (current) current.failed[String(at)] = { kind: String(kind), text: text.slice(0, 500), inside }
  write(((error && error.stack) || text).split('\n').slice(0, 12).join('\n').slice(0, 2500))
}
process.on('uncaughtException', error => fail(error))
process.on('unhandledRejection', error => fail(error))

// On one line; of an object with a life of its own (a server, a stream) only the outside.
const line = value => util.inspect(value, { depth: isData(value) ? 4 : 0, breakLength: Infinity, maxArrayLength: 20, maxStringLength: 300 }).replace(/\s+/g, ' ').slice(0, 300)
const isData = value => Object(value) !== value || typeof value === 'function' || util.types.isBoxedPrimitive(value) || !value.constructor || /^(Object|Array|Map|Set|Date|RegExp|\w*Array|Buffer|\w*Error)$/.test(value.constructor.name)
// Whether a value says anything: nothing and emptiness do not.
const telling = value => value !== undefined && value !== null && value !== '' && !Number.isNaN(value) && !(isData(value) && typeof value === 'object' && !(value instanceof Date) && !(value instanceof Error) && Object.keys(value).length === 0 && !value.size)
const show = value => util.inspect(value, { depth: 4, breakLength: 100, maxArrayLength: 20, maxStringLength: 300 })
// What comes outside of a statement, from an example that never comes to rest, is there or not by chance: left out.
let inside = false
let restless = false
const heard = text => {
  printed += text
  if (!quiet && (inside || !restless)) write(text.replace(/\n$/, '').slice(0, 2000))
}
for (const level of ['log', 'info', 'warn', 'error', 'debug', 'dir']) {
  console[level] = (...args) => heard((level === 'dir' ? show(args[0]) : util.format(...args)) + '\n')
}
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (chunk, ...rest) => {
    heard(String(chunk))
    const done = rest.find(value => typeof value === 'function')
    if (done) process.nextTick(done)
    return true
  }
}

const define = names => {
  for (const [name, value] of Object.entries(names)) {
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true })
  }
}
const load = async spec => {
  if (spec.startsWith('.')) return import(pathToFileURL(path.resolve(process.cwd(), spec)).href)
  return import(spec)
}
const pick = (module, names, spec) => {
  for (const name of names) {
    if (name in module) continue
    if (module.default && name in Object(module.default)) continue
    throw new SyntaxError(`The requested module '${spec}' does not provide an export named '${name}'`)
  }
  return new Proxy(module, { get: (m, n) => (n in m ? m[n] : Object(m.default)[n]) })
}

const bound = pattern => {
  if (!pattern) return []
  if (pattern.type === 'Identifier') return [pattern.name]
  if (pattern.type === 'ObjectPattern') return pattern.properties.flatMap(p => bound(p.value || p.argument))
  if (pattern.type === 'ArrayPattern') return pattern.elements.flatMap(bound)
  if (pattern.type === 'AssignmentPattern') return bound(pattern.left)
  return bound(pattern.argument)
}

// A statement as code of its own: [code, whether it returns a value, names it declares].
const compile = (source, node) => {
  const text = source.slice(node.start, node.end)
  switch (node.type) {
    case 'ImportDeclaration': {
      const spec = JSON.stringify(node.source.value)
      const parts = [`const __m = await __load(${spec})`]
      const names = []
      for (const s of node.specifiers) {
        names.push(s.local.name)
        if (s.type === 'ImportDefaultSpecifier') parts.push(`const ${s.local.name} = 'default' in __m ? __m.default : __m`)
        else if (s.type === 'ImportNamespaceSpecifier') parts.push(`const ${s.local.name} = __m`)
        else {
          const name = JSON.stringify(s.imported.name ?? s.imported.value)
          parts.push(`const ${s.local.name} = __pick(__m, [${name}], ${spec})[${name}]`)
        }
      }
      parts.push(`__define({${names.join(',')}})`)
      return [parts.join(';'), false, names]
    }
    case 'VariableDeclaration': {
      const names = node.declarations.flatMap(d => bound(d.id))
      return [`${text}\n;__define({${names.join(',')}})`, false, names]
    }
    case 'FunctionDeclaration':
    case 'ClassDeclaration':
      return [`${text}\n;__define({${node.id.name}})`, false, [node.id.name]]
    case 'ExportNamedDeclaration':
      return node.declaration ? compile(source, node.declaration) : ['', false, []]
    case 'ExportDefaultDeclaration':
      return [`const __exported = (${source.slice(node.declaration.start, node.declaration.end)}\n);__define({__exported})`, false, ['__exported']]
    case 'ExpressionStatement':
      return [`return (${source.slice(node.expression.start, node.expression.end)}\n)`, true, []]
    default:
      return [text, false, []]
  }
}

const documented = (source, node, comments) => {
  const line = source.slice(0, node.end).split('\n').length
  for (const c of comments) {
    const at = c.loc.start.line
    const next = at === line + 1 && /^\s*(=>|->|→|outputs?:?|prints?:?|returns?:?)\s/i.test(c.value)
    if (c.start >= node.end && (at === line || next)) {
      return c.value.trim().replace(/^(=>|->|→|==+>?|>|outputs?:?|prints?:?|logs?:?|returns?:?)\s*/i, '').trim()
    }
  }
  return ''
}
const json = value => { try { return JSON.stringify(value) || '' } catch { return '' } }
const text = value => { try { return Object(value) === value ? '' : String(value) } catch { return '' } }
const same = (said, seen) => {
  const flat = text => text.replace(/["`]/g, "'").replace(/\s+/g, '').replace(/;$/, '')
  return seen.trim() !== '' && seen !== 'undefined' && (flat(said) === flat(seen) || flat(said) === `'${flat(seen)}'`)
}
// Whether a comment states a literal of the kind that came, where nothing of ours and no failure stands between.
let supplied = false
let table = null  // our sample as rows, for what makes nothing of one object
const contradicts = (said, value) => {
  if (supplied || current.samples.length || Object.keys(current.failed).length) return false
  let stated
  try { stated = JSON.parse(said.replace(/;$/, '').replace(/'/g, '"')) } catch { return false }
  if (printed.trim() !== '') return true
  if (value === undefined || value === null || stated === null) return false
  if (typeof stated === 'number' && typeof value === 'number') return Math.abs(stated - value) > 1e-3 * Math.abs(value)
  return typeof stated === typeof value && Array.isArray(stated) === Array.isArray(value)
}
// A promise, at most LIMIT; left sooner where nothing is under way any more that could settle it.
const within = (promise, limit = LIMIT) => {
  let timer
  let watch
  let idle = 0
  let used = process.cpuUsage()
  const blocked = why => Object.assign(new Error(why), { code: 'Blocked' })
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(blocked(`still running after ${limit / 1000} s`)), limit)
    watch = setInterval(() => {
      const busy = process.getActiveResourcesInfo().filter(r => !/^(TTYWrap|PipeWrap|Immediate|SignalWrap)/.test(r))
      const { user, system } = process.cpuUsage(used)
      used = process.cpuUsage()  // a thread that compiles or hashes is no resource, but it works
      idle = busy.length <= 2 && busy.every(r => r === 'Timeout') && user + system < 30000 ? idle + 1 : 0
      if (idle > 9) reject(blocked('it waits for what nothing will bring'))
    }, 300)
  })
  return Promise.race([promise, late]).finally(() => { clearTimeout(timer); clearInterval(watch) })
}
// Wait until nothing is under way that was not already before this example; a few seconds for each example.
const passive = /^(TTYWrap|PipeWrap|TCPServerWrap|TCPSERVERWRAP|Immediate|SignalWrap|FSEvent\w*|StatWatcher|MessagePort|CloseReq)/
const busy = () => process.getActiveResourcesInfo().filter(r => !passive.test(r)).length
let background = 0
let patience = 0
const calm = async (most = 60) => {
  for (let i = 0; i < most && patience > 0; i++, patience--) {
    await new Promise(resolve => setTimeout(resolve, 50))
    if (busy() <= background) return true
  }
  return false
}

// Names that come from the package, or from what was made with it.
const fromPackage = new Set()
const walk = (node, visit, within = false) => {
  if (!node || typeof node.type !== 'string') return
  visit(node, within)
  const inner = within || /^(Arrow)?Function|^Class/.test(node.type)
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) value.forEach(item => walk(item, visit, inner))
    else if (value && typeof value === 'object') walk(value, visit, inner)
  }
}
const isOwn = spec => typeof spec === 'string' && (listed.package || []).some(p => spec === p || spec.startsWith(p + '/'))
// Whether a statement that ran worked with the package: not an import alone, not a definition alone (what stands in
// the body of a function that is only defined did not run).
const uses = (node, names) => {
  let own = false
  let loads = 0
  let work = 0
  walk(node, (n, inFunction) => {
    if (n.type === 'Identifier' && fromPackage.has(n.name)) own = true
    if (n.type === 'ImportDeclaration' && isOwn(n.source.value)) own = true
    if (n.type === 'ImportExpression' && isOwn(n.source.value)) { own = true; loads++ }
    if (n.type === 'CallExpression' && n.callee.name === 'require') { loads++; if (isOwn(n.arguments[0] && n.arguments[0].value)) own = true }
    if (n.type === 'CallExpression' && /^define[A-Z]/.test(n.callee.name || '')) loads++  // gives back what it is given
    if (/^(CallExpression|NewExpression|TaggedTemplateExpression|ForOfStatement)$/.test(n.type) && !inFunction) work++
  })
  if (!own) return false
  names.forEach(name => fromPackage.add(name))
  return !/^(Import|Function|Class)/.test(node.type) && work > loads
}

const run = async (code) => {
  const names = ['require', 'module', 'exports', '__filename', '__dirname', '__load', '__pick', '__define']
  const module = { exports: {} }
  const f = new AsyncFunction(...names, code)
  const again = Object.values({ ...(before[current.id] || {}).failed, ...current.failed }).some(f => f.kind === 'Blocked')
  const running = f(require, module, module.exports, path.join(process.cwd(), 'example.js'), process.cwd(), load, pick, define)
  return within(running, again ? Math.min(LIMIT, 5000) : LIMIT)
}
const supply = (error, given) => {
  const missing = /^(\w+) is not defined$/.exec(error.message || '')
  if (error.name === 'ReferenceError' && missing) return missing[1]
  const told = /(?:missing|not found|no such file|(?:cannot|can't|unable to|could not|failed to) (?:open|load|read|find))[^\n]{0,60}?([\w-]+\.[a-z0-9]{2,5})\b/i.exec(error.message || '')
  const wanted = error.code === 'ENOENT' && error.path && !String(error.syscall).startsWith('spawn') ? error.path : told && told[1]
  if (wanted && !given.includes(wanted)) {
    const name = path.relative(process.cwd(), path.resolve(wanted))
    const made = spawnSync('python3', ['-c', 'import sys;sys.path.insert(0,sys.argv[1]);import verify_samples as s;sys.exit(0 if s.make(sys.argv[2]) else 1)', here, name])
    if (made.status === 0) { given.push(name); return true }
  }
  return null
}
const imports = async name => {
  if (Object.hasOwn(frames, name)) { define(frames); return true }
  const known = builtin(name, require)
  if (known) { define({ [name]: known }); return true }
  if (/^(options|opts|config|settings)$/.test(name)) { define({ [name]: {} }); return true }
  if (/^(data|obj|locals|context|props|params|vars|view|model|record)$/.test(name)) {
    define({ [name]: { name: 'sample', values: [1, 2, 3] } })
    table = { [name]: [{ name: 'fox', size: 2 }, { name: 'dog', size: 3 }] }
    supplied = true
    return true
  }
  const plain = listed.package[0] || ''
  const id = plain.split('/').pop().replace(/\.js$/, '').replace(/[-.](\w)/g, (_, c) => c.toUpperCase())
  const module = await load(plain).catch(() => null)
  if (module && (name.toLowerCase() === id.toLowerCase() || /^[_$A-Z]$/.test(name))) {
    define({ [name]: 'default' in module ? module.default : module })
    fromPackage.add(name)
    return true
  }
  const from = Object(module && name in module ? module : module && module.default)
  if (name in from) { define({ [name]: from[name] }); fromPackage.add(name); return true }
  const made = textFor(name) || (/(fetcher|callback|handler|listener|task|work|^fn|func|doSomething|noop)$/i.test(name) && (() => 'sample'))
  if (made) { define({ [name]: made }); supplied = true; return true }
  return false
}

const ask = async (server, paths) => {
  const at = server.address()
  if (!at || typeof at !== 'object') return
  for (const where of paths.length ? paths : ['/']) {
    try {
      const answer = await fetch(`http://127.0.0.1:${at.port}${where}`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(5000) })
      const body = await answer.text()
      if (/<title>(Index of|listing directory|Directory listing)/i.test(body)) continue
      write(`GET ${where} -> ${answer.status} ${answer.headers.get('content-type') || ''} ${body.slice(0, 200).replace(/\s+/g, ' ')}`)
      if (answer.ok && body.length) current.answered.push(where)
    } catch (error) {
      write(`GET ${where} -> ${error.message}`)
      if (error.name === 'TimeoutError') return
    }
  }
}

const routes = source => [...source.matchAll(/\.(?:get|route|all|use)\(\s*['"`](\/[^'"`*]*)['"`]/g)].map(m => m[1].replace(/:\w+\??/g, '7'))

const example = async snippet => {
  const comments = []
  const parse = text => {
    comments.length = 0
    return Lenient.parse(text, { ecmaVersion: 'latest', sourceType: 'module', allowAwaitOutsideFunction: true, allowReturnOutsideFunction: true, allowHashBang: true, locations: true, onComment: comments })
  }
  const [source, tree, lost] = readable(snippet.text.replace(/^#!.*/, ''), snippet.typed, parse)
  const skip = new Set(snippet.skip || [])
  if (lost.length && !skip.has(-1)) current.failed['-1'] = { kind: 'SyntaxError', text: lost[0] }
  const components = []
  const order = tree.body.map((node, i) => [node, i])
  order.sort((a, b) => (b[0].type === 'ImportDeclaration') - (a[0].type === 'ImportDeclaration') || (b[0].type === 'FunctionDeclaration') - (a[0].type === 'FunctionDeclaration') || a[1] - b[1])
  for (const [node, i] of order) {
    if (skip.has(i) || node.directive) continue
    number = i
    quiet = Boolean(snippet.quiet) || (snippet.mute || []).includes(i)
    if (/<[\w ]*(?:your|path|replace|insert|token)[\w ]*>|['"`]\/?path\/to\b|['"`]YOUR[_ -]/i.test(source.slice(node.start, node.end))) {
      current.failed[String(i)] = { kind: 'SyntaxError', text: 'it holds a placeholder for the reader' }
      continue
    }
    printed = ''
    const element = mounted(source, node, walk)
    const [code, returns, names] = element ? [`return __render(${element}\n)`, true, []] : compile(source, node)
    for (let tries = 0; tries < 6; tries++) {
      try {
        inside = true
        const value = await run(code).finally(() => { inside = false })
        if (printed === '' && returns && /\.(then|on|catch)\(|=>|function/.test(code)) await calm()
        const name = names[0]
        // silence shows nothing, but a check that held
        const shown = telling(value) || names.some(name => telling(globalThis[name])) || printed !== '' || /\b(assert|expect|should)\b/.test(source.slice(node.start, node.end))
        if (!shown && table && tries < 5) { define(table); table = null; continue }
        current.ran.push(i)
        if (uses(node, names) && shown) current.used.push(i)
        if (name && /^([A-Z]\w*[a-z]|__exported)/.test(name) && typeof globalThis[name] === 'function' && code.includes('__jsx(')) components.push([i, name])
        const first = source.slice(node.start, node.end).split('\n')[0].slice(0, 120)
        if (quiet && !snippet.quiet) write(`${first}  ->  ${shape(names.length === 1 ? globalThis[names[0]] : value)}`)
        if (returns && value !== undefined && !quiet) write(`${first}  ->  ${line(value)}`)
        if (!returns && !quiet && names.length === 1 && node.type === 'VariableDeclaration') write(`${names[0]} = ${line(globalThis[names[0]])}`)
        const said = documented(source, node, comments)
        const seen = [show(value), text(value), json(value), printed]
        if (names.length === 1) { const v = globalThis[names[0]]; seen.push(show(v), json(v), text(v)) }
        if (said && seen.some(text => same(said, text))) {
          current.matched.push(i)
          if (!quiet) write(`as documented: ${said.slice(0, 200)}`)
        } else if (said && contradicts(said, names.length === 1 ? globalThis[names[0]] : value)) {
          const v = names.length === 1 ? globalThis[names[0]] : value
          current.differs.push([i, said.slice(0, 160), (printed.trim() || text(v) || json(v)).slice(0, 160)])
          if (current.used.includes(i)) current.doubted.push(i) // a use, if it is another output each time
          current.used = current.used.filter(other => other !== i)
          if (!quiet) write(`NOT as documented: ${said.slice(0, 200)}`)
        }
        break
      } catch (error) {
        const more = error && supply(error, current.samples)
        const target = node.expression && node.expression.left && node.expression.left.object
        if (more && target && target.name === more) { define({ [more]: {} }); continue }
        if (more === true || (more && (await imports(more)))) continue
        if (!more && error instanceof Error && error.name !== 'SyntaxError' && uses(node, []) && saysThrows(source, node, comments)) {
          for (const list of [current.ran, current.used, current.matched]) list.push(i)
          if (!quiet) write(`threw as documented: ${error.name}: ${error.message.slice(0, 200)}`)
          break
        }
        fail(error, i)
        break
      }
    }
  }
  await render(snippet, components)
}

// Components that an example only defines are rendered once: what they give shows that they work.
const render = async (snippet, components) => {
  for (const [i, name] of components) {
    number = 1000 + i
    if ((snippet.skip || []).includes(number)) continue
    for (let tries = 0; tries < 4; tries++) {
      try {
        const html = await within(Promise.resolve().then(() => globalThis.__render(globalThis.__jsx(globalThis[name], {}))))
        current.ran.push(number)
        if (html && fromPackage.has(name)) current.used.push(number)
        if (!snippet.quiet) write(`<${name} /> rendered: ${html.slice(0, 300)}`)
        break
      } catch (error) {
        const more = error && supply(error, current.samples)
        if (more === true || (more && (await imports(more)))) continue
        fail(error)
        break
      }
    }
  }
}

Object.defineProperties(globalThis, Object.getOwnPropertyDescriptors(elements(require)))
for (const snippet of listed.snippets) {
  if (snippet.drop) continue
  quiet = Boolean(snippet.quiet)
  restless = Boolean(snippet.restless)
  number = -1
  current = trials[snippet.id] = { id: snippet.id, ran: [], failed: {}, matched: [], differs: [], samples: [], answered: [], used: [], doubted: [], said: {} }
  if (trialFile) fs.writeFileSync(trialFile, JSON.stringify(trials))
  await new Promise(resolve => setTimeout(resolve, 20))
  background = busy()
  patience = 120
  write(`[example ${snippet.id}] ${snippet.title}`)
  await example(snippet)
  quiet = Boolean(snippet.quiet)
  if (!(await calm())) current.restless = true
  number = -1
  if (servers.size) {
    const paths = [...new Set([...routes(snippet.text), ...(listed.paths || [])])].slice(0, 5)
    for (const server of servers) {
      await ask(server, paths)
      server.closeAllConnections?.()
      await new Promise(resolve => { server.close(() => resolve()); setTimeout(resolve, 500) })
    }
    servers.clear()
  }
  current.done = true
  const lost = (snippet.matched || []).filter(i => !current.matched.includes(i))
  if (lost.length) current.failed.lost = { kind: 'Lost', text: `${lost.length} documented outputs no longer match` }
  const unanswered = (snippet.answered || []).filter(p => !current.answered.includes(p))
  if (unanswered.length) current.failed.mute = { kind: 'Mute', text: `no answer any more on ${unanswered}` }
  write(`[example ${snippet.id}] ${current.ran.length} statements ran${current.matched.length ? `, ${current.matched.length} outputs as documented` : ''}`)
}
if (trialFile) fs.writeFileSync(trialFile, JSON.stringify(trials))
process.reallyExit(Object.values(trials).some(t => Object.keys(t.failed).length) ? 1 : 0)
