import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitFor } from '../waitFor.ts'

const ROOT = join(import.meta.dir, '../../..')

/** Describes a real operating system process of the service. */
export type ServiceProcess = AsyncDisposable & {
  child: ChildProcess
  stdout: () => string
  stderr: () => string
  /** Resolves when the process ends. The result is the exit code, or the name of the signal that ended the process. */
  exited: Promise<number | string>
}

/**
 * Starts a process of the service from an entry file. The environment of the process contains only `env`, PATH and
 * HOME, and MUTANTS_REACH, which test/mutants needs to find the code that a test reaches.
 */
export function startProcess(
  file: string,
  env: Record<string, string>,
  args: string[] = [],
): ServiceProcess {
  return startCommand([process.execPath, join(ROOT, file), ...args], env)
}

/** Starts any program in the root folder of the project. */
export function startCommand(
  [program = '', ...args]: string[],
  env: Record<string, string>,
): ServiceProcess {
  const { PATH = '', HOME = '', MUTANTS_REACH } = process.env
  const reach = MUTANTS_REACH === undefined ? {} : { MUTANTS_REACH }
  // The output of the process goes to files. A pipe that a process shares with its children could lose the last lines.
  const folder = mkdtempSync(join(tmpdir(), 'purser-output-'))
  const [stdoutFile, stderrFile] = [join(folder, 'stdout'), join(folder, 'stderr')]
  const files = [openSync(stdoutFile, 'a'), openSync(stderrFile, 'a')] as const
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { PATH, HOME, ...reach, ...env },
    stdio: ['ignore', ...files],
  })
  for (const file of files) closeSync(file)
  const exited = new Promise<number | string>((resolve) =>
    child.once('exit', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  )
  return {
    child,
    stdout: () => readFileSync(stdoutFile, 'utf8'),
    stderr: () => readFileSync(stderrFile, 'utf8'),
    exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Waits until a process has printed text that matches the pattern. */
export const printed = (process: ServiceProcess, pattern: RegExp): Promise<RegExpExecArray> =>
  waitFor(`${pattern} to be printed`, () => {
    const ended = process.child.exitCode !== null
    const found = pattern.exec(process.stdout() + process.stderr())
    if (ended && found === null) {
      throw new Error(`the process ended: ${process.stdout()}${process.stderr()}`)
    }
    return found
  })

/**
 * Finds a free port for a process that must know its port before its start. The port is below the ports that the system
 * assigns (32768 and above). A connection of another test could take a port above before the process starts.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(10_000, 32_768)
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (!isFree) return await freePort()
  await new Promise((resolve) => server.close(resolve))
  return port
}
