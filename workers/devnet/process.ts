/** Finds the devnet process that still serves a state file after the service that started the process was killed. */
import { spawnSync } from 'node:child_process'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { errorCode } from '../../shared/errorCode.ts'

const recordSchema = z.object({
  pid: z.number().int().positive(),
  rpcUrl: z.string(),
  ownerPid: z.number().int().positive(),
})

const POLL_INTERVAL_MS = 25

const pidFile = (stateFile: string) => `${stateFile}.pid`

/**
 * Writes two process ids to a file in the folder of the state file: the id of the devnet process, and the id of this
 * process, which started the devnet.
 */
export async function recordProcess(
  stateFile: string,
  { pid, rpcUrl }: { pid: number; rpcUrl: string },
): Promise<void> {
  await writeFile(pidFile(stateFile), JSON.stringify({ pid, rpcUrl, ownerPid: process.pid }))
}

/**
 * Ends the devnet process that a killed service left running. Does nothing if there is no such process.
 *
 * @param salvage is called with the RPC URL of the devnet process before the process is ended, to save the chain state.
 * If `salvage` fails, the devnet process is ended nevertheless, because the last saved state is at most a second old.
 * @throws Error if the service that started the devnet is alive, because two services would overwrite each other's
 * chain state.
 */
export async function endOrphan(
  stateFile: string,
  timeoutMs: number,
  salvage: (rpcUrl: string) => Promise<void>,
): Promise<void> {
  const record = await readRecord(stateFile)
  if (record === null) return
  if (await isDevnet(record.pid, stateFile)) {
    if (isAlive(record.ownerPid)) {
      throw new Error(`the devnet of ${stateFile} is in use by process ${record.ownerPid}`)
    }
    await salvage(record.rpcUrl).catch(() => {})
    await endProcess(record.pid, stateFile, timeoutMs)
  }
  await rm(pidFile(stateFile), { force: true })
}

async function readRecord(stateFile: string) {
  try {
    return recordSchema.parse(JSON.parse(await readFile(pidFile(stateFile), 'utf8')))
  } catch {
    // The file with the process ids is absent or incomplete, for example because its writer crashed.
    return null
  }
}

/**
 * Tells whether a process is the devnet that serves a state file. The operating system reuses process ids, so the
 * command line of the process must name the state file.
 */
async function isDevnet(pid: number, stateFile: string): Promise<boolean> {
  // A zombie process has a process id but an empty command line, so it does not count as the devnet.
  return (await commandLineOf(pid)).includes(`${stateFile}.cache`)
}

async function commandLineOf(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  }
  return spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' }).stdout ?? ''
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // The error EPERM means that the process exists and belongs to another user.
    return errorCode(error) === 'EPERM'
  }
}

async function endProcess(pid: number, stateFile: string, timeoutMs: number): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  for (let signal: NodeJS.Signals = 'SIGTERM'; await isDevnet(pid, stateFile); ) {
    process.kill(pid, signal)
    if (performance.now() > deadlineMs) signal = 'SIGKILL'
    await new Promise((done) => setTimeout(done, POLL_INTERVAL_MS))
  }
}
