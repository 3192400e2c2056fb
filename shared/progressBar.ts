const WIDTH = 30
/** Into a file a line for every twentieth is enough. */
const STEPS = 20

/**
 * A progress bar: on a terminal one line that is written over, elsewhere a line for every five percent.
 * @returns what is told how many are done.
 */
export function progressBar(
  total: number,
  isTerminal: boolean,
  write: (text: string) => void,
): (done: number) => void {
  let shown = -1
  return (done) => {
    // More can come in while it runs.
    const of = Math.max(total, done)
    const step = Math.floor((done / of) * STEPS)
    if (!isTerminal && step === shown) return
    shown = step
    const filled = Math.round((done / of) * WIDTH)
    const bar = '#'.repeat(filled) + '-'.repeat(WIDTH - filled)
    const line = `[${bar}] ${Math.floor((done / of) * 100)} %  ${done} of ${of} secrets`
    write(isTerminal ? `\r${line}${done === of ? '\n' : ''}` : `${line}\n`)
  }
}
