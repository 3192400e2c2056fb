import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitFor } from '../../support/waitFor.ts'

/** Matches an error response of the service, because curl ends with exit code 0 after an error response. */
const ERROR_RESPONSE = /\{"error":"\w+","message":"[^"]*","status":\d{3}/

/** Writes each command that ends with another exit code than 0 into the file that FAILED names. */
const START = `set -o pipefail
trap 'echo "exit $?: $BASH_COMMAND" >> "$FAILED"' ERR
`

/** Acts as a reader's terminal: a shell that keeps its variables and its background jobs between two pastes. */
export class Terminal implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'purser-terminal-'))
  readonly #output = join(this.#folder, 'output')
  readonly #failed = join(this.#folder, 'failed')
  readonly #shell: ChildProcess
  readonly #exited: Promise<unknown>
  #pastes = 0
  #isClosed = false

  constructor({ cwd, env }: { cwd: string; env: Record<string, string> }) {
    writeFileSync(this.#failed, '')
    const file = openSync(this.#output, 'a')
    // The shell and all its jobs have one process group, so that the end of the terminal also ends orphans.
    this.#shell = spawn('bash', ['--noprofile', '--norc'], {
      cwd,
      detached: true,
      env: { ...env, FAILED: this.#failed },
      stdio: ['pipe', file, file],
    })
    closeSync(file)
    this.#exited = new Promise((resolve) => this.#shell.once('exit', resolve))
    this.#shell.stdin!.write(START)
  }

  /** Returns everything that the terminal shows. */
  shown(): string {
    return readFileSync(this.#output, 'utf8')
  }

  /**
   * Pastes commands, and waits until they have ended. With `until`, it waits instead until the commands have printed a
   * matching text.
   * @returns what the terminal shows since the paste
   * @throws {Error} if a command failed or the service answered with an error.
   */
  async paste(commands: string, until?: RegExp): Promise<string> {
    const start = this.shown().length
    const name = `paste-${++this.#pastes}`
    const file = join(this.#folder, name)
    writeFileSync(file, `${commands}\n`)
    this.#shell.stdin!.write(`. ${file} < /dev/null; printf '\\n${name} ended\\n'\n`)
    const pattern = until ?? new RegExp(`^${name} ended$`, 'm')
    await waitFor(
      `${pattern} after ${commands}`,
      () => pattern.test(this.shown().slice(start)) || this.#failures() !== '',
      60_000,
    )
    const shown = this.shown().slice(start)
    const [error] = ERROR_RESPONSE.exec(shown) ?? []
    if (this.#failures() !== '' || error !== undefined) {
      throw new Error(`${this.#failures()}\n${commands}\nshowed:\n${shown}`)
    }
    return shown
  }

  #failures(): string {
    return readFileSync(this.#failed, 'utf8')
  }

  async [Symbol.asyncDispose]() {
    if (this.#isClosed) return
    this.#isClosed = true
    process.kill(-this.#shell.pid!, 'SIGKILL')
    await this.#exited
    await waitFor('the end of all jobs', () => !isAlive(this.#shell.pid!))
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/**
 * Tells whether a process of a process group still runs (Linux). A zombie counts as long as its other threads run,
 * because they still hold its ports.
 */
function isAlive(group: number): boolean {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .some((name) => {
      try {
        const [, state, ofGroup] =
          /^.*\) (\S) \d+ (\d+)/s.exec(readFileSync(`/proc/${name}/stat`, 'utf8')) ?? []
        if (Number(ofGroup) !== group) return false
        return state !== 'Z' || readdirSync(`/proc/${name}/task`).length > 1
      } catch {
        // The process ended before this function could read its file in /proc.
        return false
      }
    })
}
