/** Is the program that child.test.ts starts: it answers with its process id, throws, or ends. */
import { serveParent } from '../../../workers/process/child.ts'

serveParent(async (request: 'pid' | 'throw' | 'end soon') => {
  if (request === 'throw') throw new Error('no such letter')
  if (request === 'end soon') setImmediate(() => process.exit(0))
  return process.pid
})
