/** Tests where the operators of a PDF page show words, and which of these words a person does not see. */
import { describe, expect, test } from 'bun:test'
import { OPS } from 'unpdf/pdfjs'
import {
  type PageOperators,
  type Run,
  runsOf,
} from '../../../../../shared/mail/documents/pdf/pdfRuns.ts'

type Operator = [name: keyof typeof OPS, ...args: unknown[]]

const FONTS: Record<string, ReturnType<PageOperators['fontOf']>> = {
  plain: {},
  vertical: { vertical: true },
  type3: { fontMatrix: [0.01, 0, 0, 0.01, 0, 0] },
}

/** Runs the given operators on a page of 600 × 800 points. The layer `off` of this page is not shown. */
const runs = (...operators: Operator[]): Run[] =>
  runsOf({
    fnArray: operators.map(([name]) => OPS[name]),
    argsArray: operators.map(([, ...args]) => args),
    view: [0, 0, 600, 800],
    rotate: 0,
    fontOf: (name) => FONTS[name] ?? null,
    isShown: (layer) => layer !== 'off',
  })

const glyph = (unicode: string, width = 500, isSpace = false) => ({ unicode, width, isSpace })
const show = (...items: unknown[]): Operator => ['showText', items]
const at = (x: number, y: number): Operator => ['setTextMatrix', [1, 0, 0, 1, x, y]]
const FONT: Operator = ['setFont', 'plain', 10]
const WORD = show(glyph('a'), glyph('b'))
const WHITE: Operator = ['setFillRGBColor', '#ffffff']
const fill = (
  left: number,
  bottom: number,
  right: number,
  top: number,
  paint = OPS.fill,
): Operator => [
  'constructPath',
  paint,
  [[0, left, bottom, 1, right, bottom, 1, right, top, 1, left, top, 4]],
  [left, bottom, right, top],
]

/**
 * Runs the given PDF operators, and then shows a word at the position (100, 100). Returns the word that the parser
 * finds.
 */
const word = (...before: Operator[]): Run => runs(FONT, ...before, at(100, 100), WORD).at(-1)!
const unseen = (...before: Operator[]) => word(...before).unseen
const placeOf = ({ x, end, y }: Run) => [x, end, y].map((n) => Math.round(n * 1000) / 1000)

describe('words on a turned PDF page are read as a viewer shows them', () => {
  const turned = (rotate: number, ...operators: Operator[]) =>
    runsOf({
      fnArray: operators.map(([name]) => OPS[name]),
      argsArray: operators.map(([, ...args]) => args),
      view: [0, 0, 600, 800],
      rotate,
      fontOf: () => ({}),
      isShown: () => true,
    })
  const upright = (matrix: number[]): Operator => ['setTextMatrix', matrix]

  test('on a turned PDF page, words that are upright for the reader have a level base line', () => {
    for (const [rotate, matrix, place] of [
      [90, [0, 1, -1, 0, 100, 200], [200, 210, -100]],
      [180, [-1, 0, 0, -1, 100, 200], [-100, -90, -200]],
      [270, [0, -1, 1, 0, 100, 200], [-200, -190, 100]],
    ] as const) {
      const [run] = turned(rotate, FONT, upright([...matrix]), WORD)
      expect([rotate, placeOf(run!), run!.unseen]).toEqual([rotate, [...place], null])
    }
  })

  test('words outside of a turned PDF page are omitted', () => {
    const [run] = turned(90, FONT, upright([0, 1, -1, 0, 700, 200]), WORD)
    expect(run?.unseen).toBe('off-page-text')
  })
})

describe('each word of a PDF page is read with its letters, its font size and its base line', () => {
  test('each word of a PDF page has a font size and a base line from the start to the end of the word', () => {
    expect(word()).toEqual({ text: 'ab', x: 100, end: 110, y: 100, size: 10, unseen: null })
  })

  test('if a PDF page shows two words one after another, the second begins on the same line where the first ends', () => {
    const [one, two] = runs(FONT, at(100, 100), WORD, WORD)
    expect([placeOf(one!), placeOf(two!)]).toEqual([
      [100, 110, 100],
      [110, 120, 100],
    ])
  })

  test('nulls and glyphs without letters in the list of glyphs of a PDF page add neither text nor space to a word', () => {
    expect(runs(FONT, at(1, 1), ['showText', 'x'], ['showText'])).toEqual([])
    expect(runs(FONT, at(1, 1), show(null), show({}))).toEqual([])
    expect(runs(FONT, at(1, 1), show(glyph('a'), null, {}, glyph('b')))[0]).toMatchObject({
      text: 'ab',
      end: 11,
    })
  })

  test('words of a PDF page may have extra space between letters and words, and a horizontal scale', () => {
    const spaced = (...before: Operator[]) =>
      placeOf(
        runs(
          FONT,
          ...before,
          at(100, 100),
          show(glyph('a'), glyph('b'), glyph(' ', 500, true)),
        )[0]!,
      )[1]
    expect(spaced()).toBe(115)
    expect(spaced(['setCharSpacing', 1])).toBe(118)
    expect(spaced(['setWordSpacing', 3])).toBe(118)
    expect(spaced(['setHScale', 50], ['setWordSpacing', 2])).toBe(108.5)
  })

  test('words of a PDF page are split at a gap of more than 180 thousandths of the font size', () => {
    const cut = (gap: number) =>
      runs(FONT, at(100, 100), show(glyph('a'), gap, glyph('b'))).map((one) => [
        one.text,
        ...placeOf(one),
      ])
    expect(cut(-180)).toEqual([['ab', 100, 111.8, 100]])
    expect(cut(180)).toEqual([['ab', 100, 108.2, 100]])
    expect(cut(-200)).toEqual([
      ['a', 100, 105, 100],
      ['b', 107, 112, 100],
    ])
    expect(cut(181)).toHaveLength(2)
    expect(runs(FONT, at(100, 100), show(-200, glyph('b'))).map(placeOf)).toEqual([[100, 107, 100]])
  })

  test('each right-to-left letter on a PDF page is read as a separate piece of text', () => {
    const texts = runs(FONT, at(1, 1), show(glyph('a'), glyph('ש'), glyph('ל'), glyph('b'))).map(
      ({ text }) => text,
    )
    expect(texts).toEqual(['a', 'ש', 'ל', 'b'])
  })

  test('words of a PDF page in a vertical font run downwards', () => {
    const [one, two] = runs(['setFont', 'vertical', 10], at(100, 100), WORD, WORD)
    expect([placeOf(one!)[2], placeOf(two!)[2]]).toEqual([100, 80])
  })

  test('words of a PDF page in a type 3 font have the widths and the scale of this font', () => {
    const [one] = runs(['setFont', 'type3', 1], at(100, 100), show(glyph('a', 50)))
    expect(one).toMatchObject({ end: 100.5, size: 1, unseen: null })
  })
})

describe('the PDF operators that move the text decide the position of each word', () => {
  const places = (...operators: Operator[]) =>
    runs(FONT, ...operators).map((one) => placeOf(one).filter((_, n) => n !== 1))

  test('the text position on a PDF page moves by steps that are relative to the start of the line', () => {
    expect(places(['beginText'], ['moveText', 10, 20], WORD, ['moveText', 5, 7], WORD)).toEqual([
      [10, 20],
      [15, 27],
    ])
    expect(places(['moveText', 10, 20], ['beginText'], WORD)).toEqual([[0, 0]])
  })

  test('the text position on a PDF page moves down to the next line by the line spacing (leading)', () => {
    expect(places(at(10, 100), ['setLeading', 12], ['nextLine'], WORD)).toEqual([[10, 88]])
    expect(places(at(10, 100), ['setLeadingMoveText', 3, -9], ['nextLine'], WORD)).toEqual([
      [13, 82],
    ])
  })

  test('a list of six numbers sets the text position on a PDF page as a matrix, but a shorter list changes nothing', () => {
    expect(places(['setTextMatrix', 1, 0, 0, 1, 7, 8], WORD)).toEqual([[7, 8]])
    expect(places(at(7, 8), ['setTextMatrix', [1, 2]], WORD)).toEqual([[7, 8]])
    expect(places(at(7, 8), ['transform', 1], WORD)).toEqual([[7, 8]])
  })

  test('the text rise of a PDF page moves words above the line', () => {
    expect(places(at(7, 8), ['setTextRise', 3], WORD)).toEqual([[7, 11]])
  })

  test('a transformation matrix moves the words of a PDF page until the saved state is restored', () => {
    const double: Operator = ['transform', 2, 0, 0, 2, 10, 20]
    for (const [begin, end] of [
      ['save', 'restore'],
      ['beginGroup', 'endGroup'],
    ] as const)
      expect(places([begin], double, at(1, 2), WORD, [end], at(1, 2), WORD)).toEqual([
        [12, 24],
        [1, 2],
      ])
    expect(places(['restore'], at(1, 2), WORD)).toEqual([[1, 2]])
  })

  test('the transformation matrix of a PDF form moves the words of the form, and the two matrices of an annotation move the words of the annotation', () => {
    const moved = [1, 0, 0, 1, 10, 20]
    expect(
      places(
        ['paintFormXObjectBegin', moved, null],
        at(1, 2),
        WORD,
        ['paintFormXObjectEnd'],
        at(1, 2),
        WORD,
      ),
    ).toEqual([
      [11, 22],
      [1, 2],
    ])
    expect(
      places(
        ['beginAnnotation', 'id', [], moved, moved],
        at(1, 2),
        WORD,
        ['endAnnotation'],
        at(1, 2),
        WORD,
      ),
    ).toEqual([
      [21, 42],
      [1, 2],
    ])
  })

  test('up to 500 saved states of a PDF page can be nested and restored', () => {
    const deep = (levels: number) => {
      const saves = Array.from({ length: levels }, (): Operator[] => [
        ['save'],
        ['transform', 1, 0, 0, 1, 1, 0],
      ])
      return places(...saves.flat(), ['restore'], at(0, 0), WORD)[0]![0]
    }
    expect([deep(500), deep(501)]).toEqual([499, 499])
  })
})

describe('the service omits words of a PDF page that a person does not see', () => {
  test('words on a PDF layer that is switched off are hidden', () => {
    const layer = (tag: string, name: string): Operator => ['beginMarkedContentProps', tag, name]
    expect(unseen(layer('OC', 'off'))).toBe('hidden-text')
    expect(unseen(layer('OC', 'on'))).toBeNull()
    expect(unseen(layer('P', 'off'))).toBeNull()
    expect(unseen(layer('OC', 'off'), ['endMarkedContent'])).toBeNull()
    expect(unseen(layer('OC', 'off'), ['beginMarkedContent', 'P'], ['endMarkedContent'])).toBe(
      'hidden-text',
    )
    expect(unseen(layer('OC', 'off'), ['beginMarkedContent', 'P'])).toBe('hidden-text')
  })

  test('words of a PDF page count as outside of the page if their middle is outside', () => {
    const placed = (x: number, y: number) =>
      runs(['setFont', 'plain', 9], at(x, y), show(glyph('a', 1_000)))[0]!.unseen
    for (const [x, y] of [
      [-4.5, 100],
      [595.5, 100],
      [100, -3],
      [100, 797],
    ] as const)
      expect([x, y, placed(x, y)]).toEqual([x, y, null])
    for (const [x, y] of [
      [-5, 100],
      [596, 100],
      [100, -3.5],
      [100, 797.5],
    ] as const)
      expect([x, y, placed(x, y)]).toEqual([x, y, 'off-page-text'])
  })

  test('words outside of the clipping area of a PDF page are hidden', () => {
    const clipped = (clip: Operator, ...box: number[]) =>
      unseen(clip, ['constructPath', OPS.endPath, [null], box])
    for (const clip of ['clip', 'eoClip'] as const) {
      expect(clipped([clip], 200, 0, 600, 800)).toBe('off-page-text')
      expect(clipped([clip], 0, 0, 105, 800)).toBeNull()
    }
    expect(clipped(['save'], 200, 0, 600, 800)).toBeNull()
    expect(clipped(['clip'], 200, 0)).toBeNull()
    const far: Operator = ['constructPath', OPS.endPath, [null], [200, 0, 600, 800]]
    expect(
      unseen(['clip'], ['constructPath', OPS.endPath, [null], [0, 0, 600, 800]], far),
    ).toBeNull()
    expect(unseen(['paintFormXObjectBegin', null, [200, 0, 600, 800]])).toBe('off-page-text')
    expect(unseen(['paintFormXObjectBegin', [1, 0, 0, 1, 50, 0], [100, 0, 120, 800]])).toBeNull()
  })

  test('words on a PDF page count as hidden if their letters are smaller than two points, unless their font enlarges the letters', () => {
    expect(unseen(['setFont', 'plain', 1.9])).toBe('tiny-text')
    expect(unseen(['setFont', 'plain', 2])).toBeNull()
    expect(unseen(['setFont', 'unheard', 1.9])).toBe('tiny-text')
    expect(unseen(['setFont', 'type3', 1.9])).toBeNull()
    expect(unseen(['setFont', 'plain', -10])).toBeNull()
    expect(unseen(['setGState', [['Font', ['plain', 1]]]])).toBe('tiny-text')
  })

  test('words of a PDF page are hidden if their text mode does not paint them, or if they are almost transparent', () => {
    for (const [mode, why] of [
      [0, null],
      [1, null],
      [2, null],
      [3, 'invisible-text'],
      [7, 'invisible-text'],
    ])
      expect([mode, unseen(['setTextRenderingMode', mode])]).toEqual([mode, why] as never)
    expect(unseen(['setGState', [['ca', 0.09]]])).toBe('invisible-text')
    expect(unseen(['setGState', [['ca', 0.1]]])).toBeNull()
    expect(unseen(['setGState', [['CA', 0], null]])).toBeNull()
    expect(unseen(['setGState', null])).toBeNull()
    expect(unseen(['setFillTransparent'])).toBe('invisible-text')
  })

  test('words of a PDF page are hidden if their fill or their outline has the colour of the page', () => {
    const stroke: Operator = ['setStrokeRGBColor', '#ffffff']
    const outline = (mode: number): Operator => ['setTextRenderingMode', mode]
    expect(unseen(WHITE)).toBe('invisible-text')
    expect(unseen(stroke)).toBeNull()
    for (const mode of [1, 5]) {
      expect(unseen(stroke, outline(mode))).toBe('invisible-text')
      expect(unseen(WHITE, outline(mode))).toBeNull()
      expect(unseen(stroke, ['setStrokeColorN'], outline(mode))).toBeNull()
    }
    expect(unseen(WHITE, ['setFillColorN'])).toBeNull()
  })
})

describe('if the operators of a PDF page paint an area, the area is the background of later words, and hides earlier words', () => {
  const BLACK: Operator = ['setFillRGBColor', '#000000']

  test('a painted area is the background of later words whose middle is inside the area', () => {
    expect(unseen(BLACK, fill(100, 100, 110, 110))).toBe('invisible-text')
    expect(unseen(BLACK, fill(100, 100, 110, 110), WHITE)).toBeNull()
    expect(unseen(BLACK, fill(106, 100, 120, 110), WHITE)).toBe('invisible-text')
    expect(unseen(BLACK, fill(90, 90, 120, 120), WHITE, fill(90, 90, 120, 120))).toBe(
      'invisible-text',
    )
  })

  test('each PDF operator that fills a path makes a painted area', () => {
    for (const paint of [
      'fill',
      'eoFill',
      'fillStroke',
      'eoFillStroke',
      'closeFillStroke',
      'closeEOFillStroke',
    ] as const)
      expect([paint, unseen(fill(90, 90, 120, 120, OPS[paint]), WHITE)]).toEqual([paint, null])
    expect(unseen(fill(90, 90, 120, 120, OPS.stroke), WHITE)).toBe('invisible-text')
    expect(unseen(['setGState', [['ca', 0.9]]], fill(90, 90, 120, 120), WHITE)).toBe(
      'invisible-text',
    )
    expect(unseen(['constructPath', OPS.fill, [null], [90, 90]], WHITE)).toBe('invisible-text')
  })

  test('a transformation matrix moves a painted area of a PDF page, and the clipping area cuts it', () => {
    const moved: Operator = ['transform', 1, 0, 0, 1, 90, 90]
    expect(unseen(['save'], moved, fill(0, 0, 30, 30), ['restore'], WHITE)).toBeNull()
    const clip: Operator[] = [['clip'], ['constructPath', OPS.endPath, [null], [200, 0, 600, 800]]]
    expect(unseen(['save'], ...clip, fill(90, 90, 300, 120), ['restore'], WHITE)).toBe(
      'invisible-text',
    )
  })

  test('an area on a PDF layer that is switched off is not painted', () => {
    const off: Operator = ['beginMarkedContentProps', 'OC', 'off']
    expect(unseen(off, fill(90, 90, 120, 120), ['endMarkedContent'], WHITE)).toBe('invisible-text')
  })

  test('a painted area of a PDF page has an unknown colour if it is a picture or is no rectangle', () => {
    const picture: Operator[] = [
      ['save'],
      ['transform', 90, 0, 0, 90, 90, 90],
      ['paintImageXObject'],
      ['restore'],
    ]
    expect(unseen(...picture, WHITE)).toBeNull()
    expect(unseen(...picture)).toBeNull()
    const path = (...numbers: number[]): Operator => [
      'constructPath',
      OPS.fill,
      [numbers],
      [90, 90, 120, 120],
    ]
    const square = [0, 90, 90, 1, 120, 90, 1, 120, 120, 1, 90, 120]
    expect(unseen(path(...square))).toBe('invisible-text')
    expect(unseen(path(...square, 1, 90, 90, 4))).toBe('invisible-text')
    expect(unseen(path(...square, 1, 90, 90, 1, 90))).toBeNull()
    expect(unseen(path(...square, 4, 4))).toBe('invisible-text')
    expect(unseen(path(...square.slice(0, 11)))).toBeNull()
    expect(unseen(path(0, 90, 90, 2, 120, 90, 1, 120, 120, 1, 90, 120))).toBeNull()
    expect(unseen(path(0, 90, 90, 1, 120, 90, 1, 120, 120, 1, 95, 120))).toBeNull()
    expect(unseen(path(0, 90, 90, 1, 120, 90, 1, 120, 120, 1, 90, 115))).toBeNull()
    expect(unseen(['constructPath', OPS.fill, null, [90, 90, 120, 120]])).toBeNull()
  })

  test('a painted area of a PDF page hides earlier words if it covers them from start to end', () => {
    const covered = (...after: Operator[]) => runs(FONT, at(100, 100), WORD, ...after)[0]!.unseen
    expect(covered()).toBeNull()
    expect(covered(fill(100, 100, 110, 110))).toBe('invisible-text')
    expect(covered(fill(100.1, 103, 109.9, 104))).toBe('invisible-text')
    for (const [left, bottom, right, top] of [
      [100.2, 0, 200, 200],
      [0, 0, 109.8, 200],
      [0, 104, 200, 200],
      [0, 0, 200, 103],
    ] as const)
      expect([left, bottom, covered(fill(left, bottom, right, top))]).toEqual([left, bottom, null])
    expect(covered(['transform', 600, 0, 0, 800, 0, 0], ['paintImageXObject'])).toBeNull()
    expect(covered(fill(0, 0, 200, 200), ['shadingFill'])).toBe('invisible-text')
    const off: Operator = ['beginMarkedContentProps', 'OC', 'off']
    expect(
      runs(FONT, off, at(100, 100), WORD, ['endMarkedContent'], fill(0, 0, 200, 200))[0]!.unseen,
    ).toBe('hidden-text')
  })

  test('the reader remembers at least the last 500 painted areas of a PDF page as possible backgrounds of words', () => {
    const more = (count: number) => Array.from({ length: count }, () => fill(300, 300, 310, 310))
    expect(unseen(fill(90, 90, 120, 120), ...more(999), WHITE)).toBeNull()
    expect(unseen(fill(90, 90, 120, 120), ...more(1_000), WHITE)).toBe('invisible-text')
  })
})

test('a highlighter over words of a PDF page does not hide the words, because its blend mode only darkens the page', () => {
  const mode = (name: string): Operator => ['setGState', [['BM', name]]]
  const yellow: Operator = ['setFillRGBColor', '#ffff00']
  const highlighted = (...before: Operator[]) =>
    runs(FONT, at(100, 100), WORD, ...before, fill(90, 90, 120, 120))[0]!.unseen
  for (const name of ['multiply', 'darken']) expect(highlighted(mode(name), yellow)).toBeNull()
  expect(highlighted(mode('source-over'), yellow)).toBe('invisible-text')
  expect(highlighted(mode('multiply'), mode('source-over'), yellow)).toBe('invisible-text')
  const ground = fill(90, 90, 120, 120)
  expect(unseen(mode('multiply'), ground, WHITE)).toBeNull()
  expect(unseen(mode('multiply'), WHITE, ground)).toBe('invisible-text')
})
