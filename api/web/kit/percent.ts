/**
 * Formats a fraction as a percentage, for example `12 %`. The text is `0 %` or `100 %` only if the fraction is exactly
 * 0 or 1.
 */
export const percent = (share: number): string =>
  `${share === 0 || share === 1 ? 100 * share : Math.min(99, Math.max(1, Math.round(100 * share)))} %`
