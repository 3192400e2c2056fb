const WIDTH = 30
/** Sets the number of progress lines if the output is no terminal: one line for every five percent. */
const STEPS = 20

/**
 * Shows the progress of a long task. On a terminal, the function overwrites one line. Without a terminal, the function
 * prints a line for every five percent.
 * @returns a function that shows the progress. The caller gives this function the number of finished items.
 */
export function progressBar(
  total: number,
  isTerminal: boolean,
  write: (text: string) => void,
  label = (done: number, of: number) => `${done} of ${of} secrets`,
): (done: number) => void {
  let shown = -1
  return (done) => {
    // The total is the larger of two numbers: the secrets at the start, and the finished secrets. Another process may
    // store new secrets during this task, so the second number may exceed the first.
    const of = Math.max(total, done)
    const step = Math.floor((done / of) * STEPS)
    if (!isTerminal && step === shown) return
    shown = step
    const filled = Math.round((done / of) * WIDTH)
    const bar = '#'.repeat(filled) + '-'.repeat(WIDTH - filled)
    const line = `[${bar}] ${Math.floor((done / of) * 100)} %  ${label(done, of)}`
    write(isTerminal ? `\r${line}${done === of ? '\n' : ''}` : `${line}\n`)
  }
}
