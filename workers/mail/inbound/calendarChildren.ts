import { join } from 'node:path'
import { type ChildLimits, createChildren } from '../../process/child.ts'
import type { DocumentAnswer, DocumentRequest } from './documentMain.ts'

/**
 * Limits the time and memory for reading one calendar file. Expanding a recurrence rule over twenty years takes 50 ms.
 * A recurrence rule without any instance takes all the allowed time.
 */
const LIMITS: ChildLimits = { timeMaxMs: 3_000, memoryMaxBytes: 512 * 1024 * 1024 }

/** Creates child processes that read calendar files and compute the instances of their recurrence rules. */
export const createCalendarChildren = () =>
  createChildren<DocumentRequest, DocumentAnswer>({
    file: join(import.meta.dir, 'documentMain.ts'),
    name: 'the reader of calendar files',
    limits: LIMITS,
  })
