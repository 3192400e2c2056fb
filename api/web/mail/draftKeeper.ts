import { ask, at } from '../kit/ask.ts'
import { exactly } from '../kit/format.ts'
import type { Draft } from '../kit/types.ts'

/** After the last key. A request for each key would be many, and a lost second of typing is little. */
const KEEP_AFTER_MS = 800

export type Content = Record<string, unknown>

/** Keeps what is typed as a draft of the project. */
export function draftKeeper({
  projectId,
  read,
  readAnyway,
  say,
  opened,
}: {
  projectId: string
  /** What can be kept now, also in the middle of a word. */
  read: () => Content
  /** All that stands there, valid or not. */
  readAnyway: () => Content
  say: (text: string) => void
  opened: Draft | null
}) {
  const path = at`/projects/${projectId}/v0/messages/drafts`
  let draftId = opened?.draftId ?? null
  let isMade = false
  /** What was there at first: without another word there is nothing to keep. */
  const initial = readAnyway()
  let kept: Content = opened === null ? {} : read()
  let timer: ReturnType<typeof setTimeout> | undefined
  let work: Promise<void> = Promise.resolve()

  const store = async (content: Content): Promise<void> => {
    const changes = changesOf(kept, content)
    if (Object.keys(changes).length === 0 && draftId !== null) return
    const given = Object.fromEntries(
      Object.entries(changes).filter(([, value]) => value !== undefined),
    )
    if (draftId === null) {
      const made = await ask<Draft>(path, { method: 'POST', body: given })
      draftId = made.draftId
      isMade = true
    } else {
      const remove = Object.keys(changes).filter((name) => changes[name] === undefined)
      await ask(path + at`/${draftId}`, { method: 'PATCH', body: { ...given, remove } })
    }
    kept = content
    say(`Kept as a draft at ${exactly(new Date())}`)
  }
  /** One at a time: two requests could create two drafts. */
  const then = (act: () => Promise<void>): Promise<void> => {
    work = work.then(act, act)
    return work
  }
  const keep = () =>
    then(() => store(read())).catch((error: unknown) =>
      say(`Not kept: ${error instanceof Error ? error.message : error}`),
    )
  return {
    /** Something was typed. */
    changed: (): void => {
      clearTimeout(timer)
      timer = setTimeout(keep, KEEP_AFTER_MS)
    },
    /** Keeps at once. */
    keep: async (): Promise<void> => {
      clearTimeout(timer)
      await keep()
    },
    /** Whether there is something to lose. */
    isBegun: (): boolean => isMade || Object.keys(changesOf(initial, readAnyway())).length > 0,
    /** Sends it. The service takes a draft once, however often it is asked. @throws {AskError} */
    send: async (): Promise<{ deliveryStatus?: string }> => {
      clearTimeout(timer)
      await then(() => store(readAnyway()))
      return await ask(path + at`/${draftId!}/send`, { method: 'POST' })
    },
    forget: async (): Promise<void> => {
      clearTimeout(timer)
      await work.catch(() => {})
      if (draftId !== null) await ask(path + at`/${draftId}`, { method: 'DELETE' })
    },
  }
}

/** The fields that differ. Files are compared by identity: their bytes are many. */
function changesOf(before: Content, now: Content): Content {
  const differs = ([name, value]: [string, unknown]) =>
    value !== before[name] &&
    (name === 'attachments' || JSON.stringify(value) !== JSON.stringify(before[name]))
  return Object.fromEntries(Object.entries(now).filter(differs))
}
