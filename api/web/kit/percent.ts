/** Formats a fraction as a percentage, for example `12 %`. Only a fraction of 0 or 1 is shown as 0 % or 100 %. */
export const percent = (share: number): string =>
  `${share === 0 || share === 1 ? 100 * share : Math.min(99, Math.max(1, Math.round(100 * share)))} %`
