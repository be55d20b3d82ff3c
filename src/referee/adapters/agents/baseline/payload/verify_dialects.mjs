// What README examples are written in beside plain JavaScript: types, JSX, `[, optional]` arguments, test frames.
import { createRequire } from 'node:module'
import assert from 'node:assert'
import util from 'node:util'

let sucrase = null
try { sucrase = createRequire(import.meta.url)('sucrase') } catch { /* then types and JSX stay unreadable */ }

// Types and JSX out, line by line in place; what needs neither comes back as it is.
export const plain = text => {
  if (!sucrase) return text
  return sucrase.transform(text, {
    transforms: ['typescript', 'jsx'], jsxRuntime: 'classic', jsxPragma: '__jsx', jsxFragmentPragma: '__fragment',
    production: true, disableESTransforms: true, keepUnusedImports: true
  }).code
}

// [source, tree, what could not be read]: the whole text if a parser accepts it, else those paragraphs that one accepts.
export const readable = (text, typed, parse) => {
  const ways = typed ? [plain, t => t] : [t => t, plain]
  const attempt = part => {
    let first = null
    for (const way of ways) {
      try { const source = way(part); return [source, parse(source)] } catch (error) { first ??= error }
    }
    throw first
  }
  try { return [...attempt(text), []] } catch (error) {
    const lines = text.replace(/\[\s*,\s*[\w$, ]+\]/g, '').split(/\n(?=[ \t]*\n)/)
    const kept = []
    const lost = []
    for (let from = 0; from < lines.length;) {
      let to = Math.min(lines.length, from + 8)
      for (; to > from; to--) {
        try { kept.push(attempt(lines.slice(from, to).join('\n'))[0]); break } catch { /* a shorter one */ }
      }
      if (to === from) {
        lost.push(String(error.message))
        kept.push(lines[from].replace(/[^\n]+/g, ''))
        to++
      }
      from = to
    }
    const source = kept.join('\n')
    return [source, parse(source), lost]
  }
}

// Elements are made, and rendered, by the React that the project has.
export const elements = require => ({
  __jsx: (...parts) => require('react').createElement(...parts),
  get __fragment () { return require('react').Fragment },
  __render: element => require('react-dom/server').renderToStaticMarkup(element)
})

// The outermost element in a statement that would put it into a browser's page.
export const mounted = (source, node, walk) => {
  let found = null
  walk(node, n => {
    if (!found && n.type === 'CallExpression' && n.callee.name === '__jsx') found = n
  })
  const text = source.slice(node.start, node.end)
  return found && /\b(document|render|hydrate\w*)\b/.test(text) && node.type === 'ExpressionStatement'
    ? source.slice(found.start, found.end)
    : ''
}

const matcher = (seen, not = false) => {
  const check = (ok, what, said) => {
    if (ok === not) throw new assert.AssertionError({ message: `expected ${util.inspect(seen)} ${not ? 'not ' : ''}${what} ${util.inspect(said)}` })
  }
  const same = (a, b) => util.isDeepStrictEqual(JSON.parse(JSON.stringify(a ?? null)), JSON.parse(JSON.stringify(b ?? null)))
  const made = {
    toBe: said => check(Object.is(seen, said), 'to be', said),
    toEqual: said => check(same(seen, said), 'to equal', said),
    toStrictEqual: said => check(util.isDeepStrictEqual(seen, said), 'to equal', said),
    toContain: said => check(seen.includes(said), 'to contain', said),
    toMatch: said => check(said.test ? said.test(seen) : seen.includes(said), 'to match', said),
    toHaveLength: said => check(seen.length === said, 'to have length', said),
    toBeTruthy: () => check(Boolean(seen), 'to be', 'truthy'),
    toBeFalsy: () => check(!seen, 'to be', 'falsy'),
    toBeNull: () => check(seen === null, 'to be', null),
    toBeUndefined: () => check(seen === undefined, 'to be', undefined),
    toBeDefined: () => check(seen !== undefined, 'to be', 'defined'),
    toBeInstanceOf: said => check(seen instanceof said, 'to be a', said),
    toBeGreaterThan: said => check(seen > said, 'to be above', said),
    toBeLessThan: said => check(seen < said, 'to be below', said),
    toThrow: () => { let threw = false; try { seen() } catch { threw = true } check(threw, 'to throw', '') }
  }
  if (!not) made.not = matcher(seen, true)
  return made
}
const frame = (_title, body) => typeof body === 'function' ? body() : undefined

// Names that test examples take for granted.
export const frames = {
  describe: frame, it: frame, test: frame, expect: seen => matcher(seen), assert
}

// What a value is, where it is another one each time.
export const shape = value => {
  if (value === null || value === undefined) return String(value)
  if (typeof value === 'object') return `${Array.isArray(value) ? 'array' : (value.constructor && value.constructor.name) || 'object'}, another each time`
  return `${typeof value}, another each time`
}

// A Node module that an example takes for granted by its name.
export const builtin = (name, require) => {
  if (!['fs', 'path', 'os', 'util', 'http', 'crypto', 'stream', 'events', 'url', 'zlib'].includes(name)) return null
  return require(`node:${name}`)
}

// A small text for a variable whose name says what kind of text it holds.
const TEXTS = [
  [/svg/i, '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><rect x="0" y="0" width="20.000" height="20"/></svg>'],
  [/html/i, '<p>Hello <b>world</b></p>'], [/xml/i, '<a><b>Hello</b></a>'], [/csv/i, 'name,size\nfox,2\ndog,3\n'],
  [/json/i, '{"name":"sample"}'], [/yaml|yml/i, 'name: sample\n'], [/toml/i, 'name = "sample"\n'], [/markdown|^md|Md$/, '# Hello *world*\n'],
  [/css/i, '.a { color: red }\n'], [/^code|Code$|^source|^src$|javascript/i, 'const answer = 40 + 2;\nconsole.log(answer);\n'],
  [/te?xt|str(ing)?$|content|sentence|^input/i, 'The quick brown fox']
]
export const textFor = name => (TEXTS.find(([pattern]) => pattern.test(name)) || [])[1]

// Whether the comment at, right before or right behind a statement says that it throws.
export const saysThrows = (source, node, comments) => {
  const lineOf = at => source.slice(0, at).split('\n').length
  const [from, to] = [lineOf(node.start), lineOf(node.end)]
  return comments.some(c => {
    const near = (c.start >= node.end && c.loc.start.line <= to + 1) || (c.end <= node.start && c.loc.end.line === from - 1)
    return near && /\b(throws?|thrown|rejects?|errors?|fails?|invalid|exceptions?)\b|Error\b/i.test(c.value) && !/\b(not|never|n't) (throw|fail|reject)/i.test(c.value)
  })
}
