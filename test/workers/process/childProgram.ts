/** Runs as the child process of child.test.ts. It responds with its process id, throws, ends, or never responds. */
import { serveParent } from '../../../workers/process/child.ts'

serveParent(async (request: 'pid' | 'throw' | 'end soon' | 'spin') => {
  if (request === 'throw') throw new Error('no such letter')
  if (request === 'end soon') setImmediate(() => process.exit(0))
  while (request === 'spin');
  return process.pid
})
