/** Tests how the supervisor process starts a part of the service as a child process. */
import { expect, test } from 'bun:test'
import { startCommand } from '../../support/process/process.ts'

/**
 * Starts a part of the service whose program is missing, and prints the error. The script runs in a separate process,
 * because it changes the path of the program.
 */
const MISSING = `
  Object.defineProperty(process, 'execPath', { value: '/nowhere/bun' })
  const { startProcess } = await import('./api/operations/childProcess.ts')
  const { StartError } = await import('./shared/process/service.ts')
  const error = await startProcess('api', ['api/main.ts'], {}).catch((error) => error)
  process.stdout.write([error instanceof StartError, error.message].join(' '))`

test('if the program of one part of the service cannot start, the start fails with an error, and the supervisor process continues to run', async () => {
  await using supervisor = startCommand([process.execPath, '-e', MISSING], {})
  expect([await supervisor.exited, supervisor.stderr()]).toEqual([0, ''])
  expect(supervisor.stdout()).toStartWith('true api could not start')
})
