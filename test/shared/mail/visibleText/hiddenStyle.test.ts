/** Tests which styles and attributes hide an HTML element from a person. */
import { describe, expect, test } from 'bun:test'
import { readDeclarations } from '../../../../shared/mail/visibleText/cssRules.ts'
import {
  isSeen,
  isUnseen,
  PAGE,
  type Sight,
  sightOf,
} from '../../../../shared/mail/visibleText/hiddenStyle.ts'

const sight = (
  style: string,
  {
    name = 'p',
    attributes = {},
    parent = PAGE,
  }: { name?: string; attributes?: Record<string, string>; parent?: Sight } = {},
): Sight => sightOf(name, new Map(Object.entries(attributes)), readDeclarations(style), parent)

/** Tells whether a person sees an element with a given style on a plain page, or inside of other elements. */
const seen = (...given: Parameters<typeof sight>): boolean => isSeen(sight(...given))
const expectSeen = (styles: readonly string[], expected: boolean) => {
  for (const style of styles) expect([style, seen(style)]).toEqual([style, expected])
}

test('an HTML element without a style is visible', () => {
  expect(sight('')).toEqual(PAGE)
  expect(isSeen(PAGE)).toBe(true)
})

describe('an HTML element is hidden if its element name or its attributes hide it', () => {
  test('an HTML element of a kind that browsers do not show (such as template) is hidden', () => {
    for (const name of ['template', 'noscript', 'iframe', 'noembed', 'noframes', 'datalist'])
      expect([name, isUnseen(name), seen('', { name, attributes: { open: '' } })]).toEqual([
        name,
        true,
        false,
      ])
    expect([isUnseen('p'), isUnseen('dialog')]).toEqual([false, true])
  })

  test('an HTML dialog element is visible only if it is open', () => {
    expect(seen('', { name: 'dialog' })).toBe(false)
    expect(seen('', { name: 'dialog', attributes: { open: '' } })).toBe(true)
  })

  test('an HTML element with the attribute hidden is not visible, unless its style sets display', () => {
    const attributes = { hidden: '' }
    expect(seen('', { attributes })).toBe(false)
    expect(seen('display: block', { attributes })).toBe(true)
    expect(seen('display: none', { attributes })).toBe(false)
  })
})

describe('an HTML element is hidden if its CSS style hides it', () => {
  test('an HTML element is hidden if its CSS property display is none', () => {
    expectSeen(['display: none'], false)
    expectSeen(['display: block', 'display: inherit'], true)
  })

  test('an HTML element is hidden if its opacity is at most a twentieth', () => {
    expectSeen(['opacity: 0', 'opacity: 0.05', 'opacity: .01', 'opacity: 5%', 'opacity: 0%'], false)
    expectSeen(['opacity: 0.06', 'opacity: 1', 'opacity: 6%', 'opacity: inherit'], true)
  })

  test('an HTML element can be hidden by a CSS filter or a transformation', () => {
    expectSeen(
      [
        'filter: opacity(0)',
        'filter: blur(0) opacity(0%)',
        'filter: opacity(0.04)',
        'filter: none; transform: scale(0)',
        'transform: rotate(0) scale(0.0)',
        'transform: translate(-9999px, 0)',
        'transform: translateY(-9999px)',
        'transform: translateX(9999px)',
        'transform: scale(0)',
        'transform: scaley(0)',
        'transform: scalex(0, 1)',
      ],
      false,
    )
    expectSeen(
      [
        'filter: opacity(1)',
        'filter: opacity(0.9)',
        'filter: opacity(90%)',
        'transform: scale(0.5)',
        'transform: scale(1)',
        'transform: translate(-50%, -50%)',
        'transform: translateX(20px)',
        'filter: blur(0)',
      ],
      true,
    )
  })

  test('an HTML element is hidden if it is clipped to a width or height of at most one pixel', () => {
    for (const side of ['max-height', 'height', 'max-width', 'width'])
      for (const cut of ['overflow: hidden', 'overflow-x: hidden', 'overflow-y: clip'])
        expect([side, cut, seen(`${cut}; ${side}: 0`)]).toEqual([side, cut, false])
    expectSeen(
      ['0px', '1px', '0.0em', '1', '0%', '1.0pt'].map(
        (size) => `overflow: hidden; height: ${size}`,
      ),
      false,
    )
    expectSeen(
      ['2px', '10px', '1em', '1rem', '1%', 'auto', '0.5px'].map(
        (size) => `overflow: hidden; height: ${size}`,
      ),
      true,
    )
    expectSeen(['height: 0', 'overflow: hidden', 'overflow: visible; height: 0'], true)
  })

  test('an HTML element is hidden by a CSS clip without an area', () => {
    expectSeen(
      ['clip: rect(0,0,0,0)', 'clip: rect(1px, 1px, 1px, 1px)', 'clip: rect( 0 0 0 0)'],
      false,
    )
    expectSeen(['clip: auto', 'clip: rect(0, 9px, 9px, 0)'], true)
    expectSeen(['clip-path: inset(50%)', 'clip-path: inset(100%)', 'clip-path: circle(0)'], false)
    expectSeen(['clip-path: inset(5%)', 'clip-path: circle(50%)'], true)
  })

  test('an HTML element is hidden if CSS moves it out of the page by 400 pixels or more', () => {
    for (const side of ['text-indent', 'margin-left', 'margin-top', 'margin']) {
      expectSeen([`${side}: -400px`, `${side}: -400`, `${side}: -400pt`, `${side}: -40em`], false)
      expectSeen([`${side}: -399px`, `${side}: -39em`, `${side}: 400px`, `${side}: auto`], true)
    }
    for (const position of ['absolute', 'fixed', 'relative'])
      expectSeen(
        [`position: ${position}; left: -400px`, `position: ${position}; top: -400px`],
        false,
      )
    expectSeen(
      ['left: -400px', 'position: static; top: -400px', 'position: absolute; left: -399px'],
      true,
    )
    expectSeen(['position: absolute; right: -400px'], true)
  })

  test('an HTML element is hidden if CSS places it at a distance of 5,000 pixels or more', () => {
    for (const side of ['right', 'bottom', 'left', 'top']) {
      expectSeen([`position: absolute; ${side}: 5000px`, `position: fixed; ${side}: 500em`], false)
      expectSeen(
        [`position: absolute; ${side}: 4999px`, `position: relative; ${side}: 5000px`],
        true,
      )
      expectSeen([`${side}: 5000px`], true)
    }
  })

  test('an element inside an element with display:none is hidden, even if its own style is display:block', () => {
    const parent = sight('display: none')
    expect(parent.gone).toBe(true)
    expect(seen('display: block', { parent })).toBe(false)
  })
})

test('an element inside an element with visibility:hidden can be made visible again', () => {
  const parent = sight('visibility: hidden')
  expectSeen(['visibility: hidden', 'visibility: collapse'], false)
  expectSeen(['visibility: visible', 'visibility: inherit'], true)
  expect(seen('', { parent })).toBe(false)
  expect(seen('visibility: inherit', { parent })).toBe(false)
  expect(seen('visibility: visible', { parent })).toBe(true)
})

describe('letters that are too small to read count as hidden', () => {
  const parent = sight('font-size: 1px')

  test('letters are too small to be visible if their font size is below two pixels, 0.1 em, 0.1 rem or 10 %', () => {
    expectSeen(
      [
        'font-size: 0',
        'font-size: 1.9px',
        'font-size: 1pt',
        'font-size: 0.09em',
        'font-size: 9%',
        'font-size: 0.09rem',
        'font-size: .05vw',
      ],
      false,
    )
    expectSeen(
      [
        'font-size: 2px',
        'font-size: 2',
        'font-size: 0.1em',
        'font-size: 10%',
        'font-size: 0.1rem',
        'font-size: 0.1vw',
        'font-size: small',
      ],
      true,
    )
  })

  test('the size of letters may be set in the CSS property font', () => {
    expectSeen(['font: 0/0 a', 'font: bold 1px/1 serif', 'font: 1px serif'], false)
    expectSeen(['font: 12px/1 serif', 'font: inherit', 'font: 1px serif; font-size: 12px'], true)
  })

  test('letters inherit their size, and a size relative to tiny letters is also tiny', () => {
    for (const size of [
      '',
      'font-size: 2em',
      'font-size: 200%',
      'font-size: inherit',
      'font-size: larger',
      'font-size: initial',
    ])
      expect([size, seen(size, { parent })]).toEqual([size, false])
    for (const size of ['font-size: 12px', 'font-size: 1rem', 'font-size: medium'])
      expect([size, seen(size, { parent })]).toEqual([size, true])
    expect(seen('font-size: inherit')).toBe(true)
  })
})

describe('letters in the colour of their background count as hidden', () => {
  test.each([
    'white',
    '#fff',
    '#ffffff',
    'fff',
    '#ffff',
    '#FFFFFFFF',
    'snow',
    'whitesmoke',
    'rgb(255 255 255)',
    'rgb(255, 255, 255)',
    'rgb(100% 100% 100%)',
    'rgba(255,255,255,1)',
    'rgb(245,245,245)',
    'hsl(0, 0%, 100%)',
    'hsl(120deg 100% 99%)',
    'hsla(0,0%,0%,0)',
    'ghostwhite',
    'transparent',
    'rgba(0,0,0,0)',
    'rgba(0,0,0,0.05)',
    'rgb(0 0 0 / 0)',
    'rgb(0 0 0 / 4%)',
    '#0000',
    '#0000000c',
  ])('letters in the colour %s on white count as hidden', (colour) => {
    expect(seen(`color: ${colour}`)).toBe(false)
  })

  test.each([
    'black',
    '#000',
    '#eee',
    'red',
    'gray',
    '#ffff00',
    'currentcolor',
    'unheard',
    'rgb(255)',
    'hsl(0, 0%, 0%)',
    'hsl(0, 100%, 50%)',
    'hsl(0.5turn 100% 90%)',
    'hsl(x, 0%, 100%)',
    'hsl(0, 0%)',
    'rgb(255, 255)',
    'rgb()',
    'rgb(244,255,255)',
    'rgb(255,244,255)',
    'rgb(255,255,244)',
    'rgba(0,0,0,0.06)',
    '#0000000d',
    '#0001',
    'rgb(90% 90% 90%)',
  ])('letters in the colour %s on white count as visible', (colour) => {
    expect(seen(`color: ${colour}`)).toBe(true)
  })

  test('a translucent background is mixed with the background below, before it is compared with the colour of the letters', () => {
    const red = 'color: #E94560'
    const black = sight('background: black')
    for (const style of ['rgba(233,69,96,0.2)', 'rgb(233 69 96 / 20%)', '#E9456033'])
      expect([style, seen(`${red}; background: ${style}`)]).toEqual([style, true])
    for (const style of ['rgba(233,69,96,1)', 'rgba(233,69,96,0.97)', '#E94560ff'])
      expect([style, seen(`${red}; background: ${style}`)]).toEqual([style, false])
    expect(seen('color: #333; background: rgba(255,255,255,0.2)', { parent: black })).toBe(false)
    expect(seen('color: #333; background: rgba(255,255,255,0.2)')).toBe(true)
    const unknown = sight('background: linear-gradient(red, blue)')
    expect(seen(`${red}; background: rgba(233,69,96,0.9)`, { parent: unknown })).toBe(true)
    for (const style of ['rgba(233,69,96,0.97)', 'rgba(233,69,96,x)'])
      expect(seen(`${red}; background: ${style}`, { parent: unknown })).toBe(false)
  })

  test('letters inherit both their colour and its transparency', () => {
    const transparent = sight('color: transparent')
    const white = sight('color: white; background: black')
    for (const style of ['', 'color: inherit']) {
      expect(seen(style, { parent: transparent })).toBe(false)
      expect(seen(`${style}; background: white`, { parent: white })).toBe(false)
      expect(seen(style, { parent: white })).toBe(true)
    }
    expect(seen('color: black', { parent: transparent })).toBe(true)
  })

  test('the colour of letters may be set by an attribute of the elements font and body', () => {
    expect(seen('', { name: 'font', attributes: { color: 'white' } })).toBe(false)
    expect(seen('', { name: 'body', attributes: { text: 'white' } })).toBe(false)
    expect(seen('', { name: 'body' })).toBe(true)
    expect(seen('', { name: 'p', attributes: { color: 'white' } })).toBe(true)
    expect(seen('color: black', { name: 'font', attributes: { color: 'white' } })).toBe(true)
    expect(seen('', { name: 'font', attributes: { color: 'red', text: 'white' } })).toBe(true)
  })
})

describe('the background of letters comes from their element or a parent element', () => {
  const black = sight('background: black')

  test('the background of letters is the colour in the style, or else the colour in the attribute', () => {
    expectSeen(['background-color: black', 'background: black', 'background: #000 none'], false)
    expectSeen(['background-color: white; background: black', 'background: red'], true)
    expect(seen('', { attributes: { bgcolor: 'black' } })).toBe(false)
    expect(seen('background: white', { attributes: { bgcolor: 'black' } })).toBe(true)
  })

  test('if the background of an element is transparent or missing, the background of its parent element counts', () => {
    for (const style of [
      '',
      'background: none',
      'background: inherit',
      'background: initial',
      'background: transparent',
    ])
      expect([style, seen(style, { parent: black })]).toEqual([style, false])
    expect(seen('color: white; background: transparent', { parent: black })).toBe(true)
  })

  test('if the background of letters is a picture or a gradient, it is unknown, and the letters count as visible', () => {
    for (const style of [
      'background: url(x) black',
      'background-image: url(x); background-color: black',
      'background: linear-gradient(black, black)',
    ])
      expect([style, seen(style)]).toEqual([style, true])
    expect(seen('background: black', { attributes: { background: 'x' } })).toBe(true)
    expect(seen('color: unheard; background: unheard')).toBe(true)
  })
})

test('an unknown colour name leaves the text visible, even if it is the name of a built-in JavaScript property', () => {
  expectSeen(['color: constructor', 'color: __proto__', 'background: constructor'], true)
})
