import { svg } from './dom.ts'

const WIDTH = 240
const HEIGHT = 48
const GAP = 0.8

/** Describes one series of bars in a stacked plot. The first series lies at the bottom. */
export type Series = { tone: 'main' | 'bad' | 'soft'; values: readonly number[] }

/**
 * Plots the values of a period of time as bars. Each part of the period is one bar, the newest at the right.
 * @param label is the text that screen readers read in place of the plot.
 */
export function plot(label: string, series: readonly Series[]): SVGSVGElement {
  const length = Math.max(...series.map(({ values }) => values.length), 1)
  const totals = Array.from({ length }, (_, n) =>
    series.reduce((sum, { values }) => sum + (values[n] ?? 0), 0),
  )
  const top = Math.max(...totals, 1)
  const step = WIDTH / length
  const bars = totals.flatMap((_, n) => {
    let base = HEIGHT - 1
    return series.flatMap(({ tone, values }) => {
      const value = values[n] ?? 0
      if (value === 0) return []
      // The plot draws even a very small value as a visible bar, because a missing bar means 0.
      const height = Math.max(2, (value / top) * (HEIGHT - 4))
      base -= height
      return [
        svg('rect', {
          class: `mark ${tone}`,
          x: (n * step + GAP / 2).toFixed(2),
          y: base.toFixed(2),
          width: (step - GAP).toFixed(2),
          height: height.toFixed(2),
          rx: 0.8,
        }),
      ]
    })
  })
  return svg(
    'svg',
    {
      class: 'plot',
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': label,
    },
    svg('line', { class: 'axis', x1: 0, x2: WIDTH, y1: HEIGHT - 0.5, y2: HEIGHT - 0.5 }),
    bars,
  )
}
