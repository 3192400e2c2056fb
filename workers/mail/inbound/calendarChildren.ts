import { join } from 'node:path'
import { type ChildLimits, createChildren } from '../../process/child.ts'
import type { DocumentAnswer, DocumentRequest } from './documentMain.ts'

/** A rule of twenty years takes 50 ms. One that has no instance takes all. */
const LIMITS: ChildLimits = { timeMaxMs: 3_000, memoryMaxBytes: 512 * 1024 * 1024 }

/** Child processes that read calendar files, and make the instances of their rules. */
export const createCalendarChildren = () =>
  createChildren<DocumentRequest, DocumentAnswer>({
    file: join(import.meta.dir, 'documentMain.ts'),
    name: 'the reader of calendar files',
    limits: LIMITS,
  })
