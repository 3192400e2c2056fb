/** Makes the lines of a report about one-time codes, with the confidence interval of each rate. */
import {
  type Calibration,
  interval,
  percent,
  type Share,
} from '../shared/mail/codes/codeMails/score.ts'

export const shown = (name: string, share: Share): string => {
  if (share.all === 0) return `${name} –, 0 of 0`
  const [low, high] = interval(share)
  return `${name} ${percent(share)} % (${low}–${high}), ${share.right} of ${share.all}`
}

const BANDS = [0.97, 0.9, 0.7, 0.5, 0.2, 0]

/** Lists for each range of confidence how often a found value really is a one-time code. */
export const calibrationTable = (calibration: Calibration): string[] =>
  BANDS.map((from, n) => {
    const below = BANDS[n - 1] ?? 2
    const sum = { right: 0, all: 0 }
    for (const [confidence, { right, all }] of calibration) {
      if (confidence < from || confidence >= below) continue
      sum.right += right
      sum.all += all
    }
    return shown(`${from.toFixed(2)} to ${below > 1 ? '1.00' : below.toFixed(2)}:`, sum)
  })
