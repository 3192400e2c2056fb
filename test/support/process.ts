import { type ChildProcess, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { waitFor } from './waitFor.ts'

const ROOT = join(import.meta.dir, '../..')

/** A real process of the service, with what it printed so far. */
export type ServiceProcess = AsyncDisposable & {
  child: ChildProcess
  stdout: () => string
  stderr: () => string
  /** Resolves with the exit code, or the signal's name, when it ends. */
  exited: Promise<number | string>
}

/** Starts one of the entry files. The environment is only what is given, and what finds programs. */
export function startProcess(
  file: string,
  env: Record<string, string>,
  args: string[] = [],
): ServiceProcess {
  return startCommand([process.execPath, join(ROOT, file), ...args], env)
}

/** Starts any program in the project's folder. */
export function startCommand(
  [program = '', ...args]: string[],
  env: Record<string, string>,
): ServiceProcess {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(program, args, {
    cwd: ROOT,
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  const exited = new Promise<number | string>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown')),
  )
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    exited,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exited
    },
  }
}

/** Waits until a process has printed this. */
export const printed = (process: ServiceProcess, pattern: RegExp): Promise<RegExpExecArray> =>
  waitFor(
    `${pattern} to be printed`,
    () => {
      if (process.child.exitCode !== null) {
        throw new Error(`the process ended: ${process.stdout()}${process.stderr()}`)
      }
      return pattern.exec(process.stdout() + process.stderr())
    },
    30_000,
  )

/** A port that was free a moment ago; for processes that must know their port before they start. */
export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}
