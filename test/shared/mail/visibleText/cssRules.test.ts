/** Tests how the style sheets of an HTML mail are read, and which of their rules apply to an element. */
import { describe, expect, test } from 'bun:test'
import {
  cascade,
  readDeclarations,
  type Selected,
  StyleSheet,
} from '../../../../shared/mail/visibleText/cssRules.ts'

const valuesOf = (declarations: ReturnType<typeof readDeclarations>) =>
  Object.fromEntries([...declarations].map(([name, { value }]) => [name, value]))
const read = (css: string) => valuesOf(readDeclarations(css))

/** Returns an element that is described by a selector such as `p#id.one.two`. */
function element(text: string): Selected {
  const [, name = '', id = '', classes = ''] = /^(\w+)(?:#(\w+))?((?:\.\w+)*)$/.exec(text) ?? []
  return { name, id, classes: classes.split('.').filter((one) => one !== '') }
}
const match = (css: string, path: string) => {
  const elements = path.split(' ').map(element)
  return valuesOf(new StyleSheet(css).match(elements.at(-1)!, elements.slice(0, -1)))
}
/** Returns the colour that a style sheet gives to the last element in a path of nested elements. */
const colour = (css: string, path: string) => match(css, path).color

describe('CSS declarations are read as browsers read them, and invalid declarations are ignored', () => {
  test('the names and values of CSS declarations are converted to lower case, without the blanks around them', () => {
    expect(read(' COLOR : Red ;font: A b; ')).toEqual({ color: 'red', font: 'a b' })
    expect(read('background: url(a:b)')).toEqual({ background: 'url(a:b)' })
  })

  test('a CSS declaration without a colon or with an unknown name is ignored', () => {
    expect(read('color; :red; unheard: 1; --color: red; ')).toEqual({})
    expect(read(':;c:;colors')).toEqual({})
  })

  test('of several CSS declarations with the same name the last counts, unless an earlier one is marked !important', () => {
    expect(read('color: red; color: blue')).toEqual({ color: 'blue' })
    expect(read('color: red !important; color: blue')).toEqual({ color: 'red' })
    expect(read('color: red !important; color: blue ! IMPORTANT')).toEqual({ color: 'blue' })
    expect(readDeclarations('color: red').get('color')?.important).toBe(false)
    expect(readDeclarations('color: red!important').get('color')).toEqual({
      value: 'red',
      important: true,
    })
  })

  test('a CSS declaration counts as important only if the mark !important is at its end', () => {
    expect(read('color: unimportant')).toEqual({ color: 'unimportant' })
    expect(read('color: a !important b')).toEqual({ color: 'a !important b' })
  })

  test('comments inside CSS declarations are removed', () => {
    expect(read('co/* x */lor: red')).toEqual({})
    expect(read('color/* : blue; */: red')).toEqual({ color: 'red' })
    expect(read('/**/color: red/**/')).toEqual({ color: 'red' })
    expect(read('color: red/* no end; color: blue')).toEqual({ color: 'red' })
    expect(read('color: red/*/; color: blue')).toEqual({ color: 'red' })
  })

  test('escapes inside CSS declarations are decoded before the declarations are read', () => {
    expect(read('\\63olor: red')).toEqual({ color: 'red' })
    expect(read('\\000063 olor: red')).toEqual({ color: 'red' })
    expect(read('c\\0olor: red')).toEqual({ color: 'red' })
    expect(read('c\\0olor: red; \\110000 font: a; color: \\10ffff x')).toEqual({
      font: 'a',
      color: '\u{10ffff}x',
    })
  })
})

describe('a CSS rule applies only to the elements that its selectors match', () => {
  test('a CSS rule applies to elements by element name, class and id', () => {
    for (const selector of ['p', 'P', '*', '.one', '#id', 'p.one', 'p#id.two', '.one.two', '*.one'])
      expect([selector, colour(`${selector} {color: red}`, 'p#id.one.two')]).toEqual([
        selector,
        'red',
      ])
    for (const selector of ['div', '.three', '#two', 'div.one', 'p#one', '.one.three', '.id'])
      expect([selector, colour(`${selector} {color: red}`, 'p#id.one.two')]).toEqual([
        selector,
        undefined,
      ])
  })

  test('a CSS rule may have several selectors, and several rules may have the same selector', () => {
    expect([colour('div, p {color: red}', 'p'), colour('div,p{color:red}', 'div')]).toEqual([
      'red',
      'red',
    ])
    expect(match('p {color: red} p {font: a}', 'p')).toEqual({ color: 'red', font: 'a' })
  })

  test('a CSS rule such as "div p" applies to a p element only if its ancestors match the rest of the selector in the same order', () => {
    for (const selector of ['div p', 'div > p', '.a .b p', 'body p', 'body div p', '#x > p'])
      expect([selector, colour(`${selector} {color: red}`, 'body.a div#x.b p')]).toEqual([
        selector,
        'red',
      ])
    for (const selector of ['p div', 'div body p', 'p p', '.b .a p', 'div', 'table p', 'div div p'])
      expect([selector, colour(`${selector} {color: red}`, 'body.a div#x.b p')]).toEqual([
        selector,
        undefined,
      ])
  })

  test('a CSS rule is ignored if its selector uses syntax that the service does not support', () => {
    for (const selector of [
      'p:hover',
      'p[title]',
      'p + p',
      '',
      `p.${'x'.repeat(199)}`,
      '.one.',
      'p .',
      '1p',
    ])
      expect([selector, new StyleSheet(`${selector} {color: red}`).isEmpty]).toEqual([
        selector,
        true,
      ])
    expect(new StyleSheet(`p.${'x'.repeat(198)} {color: red}`).isEmpty).toBe(false)
    expect(colour('p:hover, p {color: red}', 'p')).toBe('red')
  })

  test('a CSS rule whose selector has more than six parts is ignored', () => {
    const inside = (parts: number) => new StyleSheet(`${'p '.repeat(parts)}{color: red}`).isEmpty
    expect([inside(6), inside(7)]).toEqual([false, true])
  })

  test('a CSS rule without a known property is ignored', () => {
    const sheet = new StyleSheet('p {unheard: 1} p {}')
    expect(sheet.isEmpty).toBe(true)
    expect(sheet.match(element('p'), []).size).toBe(0)
  })
})

describe('if two CSS rules set the same property of one element, the rule with the higher priority counts', () => {
  test('if two CSS rules set the same property, the more specific rule counts, and of equally specific rules the later one', () => {
    for (const [stronger, weaker] of [
      ['#id', '.one.two'],
      ['.one', 'p'],
      ['p.one', '.one'],
      ['p', '*'],
      ['div p', 'p'],
      ['.one.two', 'p.one'],
    ] as const) {
      const path = 'div p#id.one.two'
      expect([stronger, colour(`${stronger}{color:red} ${weaker}{color:blue}`, path)]).toEqual([
        stronger,
        'red',
      ])
      expect([stronger, colour(`${weaker}{color:blue} ${stronger}{color:red}`, path)]).toEqual([
        stronger,
        'red',
      ])
    }
    expect(colour('.one{color:red} .two{color:blue}', 'p.two.one')).toBe('blue')
    expect(colour('.two{color:red} .one{color:blue}', 'p.two.one')).toBe('blue')
  })

  test('a CSS declaration marked !important has priority over a declaration without this mark', () => {
    expect(colour('p{color:red!important} #id{color:blue}', 'p#id')).toBe('red')
    expect(colour('p{color:red!important} #id{color:blue!important}', 'p#id')).toBe('blue')
  })
})

test('of several CSS declarations the last counts, but a declaration marked !important has priority over all others', () => {
  const all = (...list: string[]) => valuesOf(cascade(list.map(readDeclarations)))
  expect(all('color: red', 'color: blue; font: a')).toEqual({ color: 'blue', font: 'a' })
  expect(all('color: red !important', 'color: blue')).toEqual({ color: 'red' })
  expect(all('color: red', 'color: blue !important', 'color: green !important')).toEqual({
    color: 'green',
  })
  expect(all()).toEqual({})
})

describe('a style sheet is read up to a maximum size, even if some of its rules are broken', () => {
  test('a style sheet may contain comments and HTML comment marks', () => {
    expect(colour('<!-- p {color: red} -->', 'p')).toBe('red')
    expect(colour('} ; p {color: red}', 'p')).toBe('red')
    expect(colour('{font: a} p {color: red}', 'p')).toBe('red')
    expect(colour('/* div */ p {color: red}', 'p')).toBe('red')
  })

  test('a style sheet may end in the middle of a rule', () => {
    expect(colour('p {color: red', 'p')).toBe('red')
    expect(new StyleSheet('p').isEmpty).toBe(true)
    expect(new StyleSheet('').isEmpty).toBe(true)
  })

  test('rules of a style sheet that are meant for all screens apply like other rules', () => {
    for (const query of ['all', 'screen', 'only screen', 'ONLY  all '])
      expect([query, colour(`@media ${query} {p {color: red}} div {color: red}`, 'p')]).toEqual([
        query,
        'red',
      ])
    expect(colour('@media screen {p {color: red}} div {color: blue}', 'div')).toBe('blue')
  })

  test('rules of a style sheet that depend on a condition are ignored', () => {
    for (const rule of ['@media print', '@media screen and (x)', '@supports (x)', '@font-face']) {
      const css = `${rule} {p {color: red} p {color: red}} div {color: blue}`
      expect([rule, colour(css, 'p'), colour(css, 'div')]).toEqual([rule, undefined, 'blue'])
    }
    expect(new StyleSheet('@media print {p {color: red} div {color: red}').isEmpty).toBe(true)
  })

  test('a style sheet is read up to 262,144 characters, and the result says whether characters were omitted', () => {
    const css = (chars: number) => new StyleSheet('p {color: red}'.padEnd(chars))
    expect([css(262_144).isCut, css(262_144).isEmpty]).toEqual([false, false])
    expect([css(262_145).isCut, css(262_145).isEmpty]).toEqual([true, false])
  })

  test('a style sheet is read up to 5,000 selectors, and the result says whether selectors were omitted', () => {
    const css = (count: number) =>
      new StyleSheet(`${'b,'.repeat(count - 1)}p {color: red} i {color: red}`)
    expect(css(4_999).isCut).toBe(false)
    const cut = css(5_000)
    expect([cut.isCut, cut.match(element('p'), []).size, cut.match(element('i'), []).size]).toEqual(
      [true, 1, 0],
    )
    expect(css(5_001).match(element('p'), []).size).toBe(0)
  })

  test('a style sheet gives each element the declarations for its name, id, classes and ancestors, and gives the same declarations when an equal element is matched again', () => {
    const sheet = new StyleSheet(
      'p {color: red} .one {color: blue} #x {color: green} div i {color: red}',
    )
    const colourOf = (one: string, ...ancestors: string[]) =>
      sheet.match(element(one), ancestors.map(element)).get('color')?.value
    for (let round = 0; round < 2; round++) {
      expect([colourOf('p'), colourOf('p.one'), colourOf('p#x')]).toEqual(['red', 'blue', 'green'])
      expect([colourOf('i'), colourOf('i', 'div'), colourOf('i')]).toEqual([
        undefined,
        'red',
        undefined,
      ])
    }
  })

  test('after 300,000 steps of matching CSS rules, the service stops matching, and each element that is checked later counts as hidden', () => {
    const shownAfter = (count: number) => {
      const sheet = new StyleSheet('i {color: red}'.repeat(1_000))
      for (let n = 0; n < count; n++) sheet.match(element(`i#x${n}`), [])
      const display = (one: string) => sheet.match(element(one), []).get('display')?.value
      return [display('i#x0'), display('i#last')]
    }
    expect(shownAfter(300)).toEqual([undefined, undefined])
    expect(shownAfter(301)).toEqual([undefined, 'none'])
  })

  test('a style sheet stores the results of matching for the first thousand elements only', () => {
    const sheet = new StyleSheet(`p {color: red} ${'i {color: red}'.repeat(1_000)}`)
    for (let n = 1; n <= 1_001; n++) sheet.match(element(`p#x${n}`), [])
    for (let n = 0; n < 301; n++) sheet.match(element(`i#y${n}`), [])
    const display = (one: string) => sheet.match(element(one), []).get('display')?.value
    expect([display('p#x1000'), display('p#x1001')]).toEqual([undefined, 'none'])
  })

  test('after 300,000 steps of matching, the service treats each CSS rule for nested elements as if it matched', () => {
    const inside = (ancestors: number) =>
      new StyleSheet('div p {color: red}').match(
        element('p'),
        Array(ancestors).fill(element('body')),
      ).size
    expect([inside(299_999), inside(300_000)]).toEqual([0, 1])
  })
})
