import { AskError, ask, at } from '../../kit/ask.ts'
import { exactly } from '../../kit/format.ts'
import type { Draft } from '../../kit/types.ts'

/**
 * Sets how many milliseconds after the last key press the console stores the draft. A request at each key press would
 * be too many, and the loss of one second's typing is harmless.
 */
const KEEP_AFTER_MS = 800

export type Content = Record<string, unknown>

/** Stores the typed text of a mail as a draft of the project. */
export function draftKeeper({
  projectId,
  read,
  readAnyway,
  say,
  opened,
}: {
  projectId: string
  /**
   * Returns the content of the form if it is valid. A field may hold an unfinished word, because the user may still be
   * typing.
   */
  read: () => Content
  /** Returns the whole content of the form, even if the content is invalid. */
  readAnyway: () => Content
  say: (text: string) => void
  opened: Draft | null
}) {
  const path = at`/projects/${projectId}/v0/messages/drafts`
  let draftId = opened?.draftId ?? null
  let isMade = false
  let hasTriedToSend = false
  /**
   * Holds the content of the form when it opens. The console stores no draft until the user has changed this content.
   */
  const initial = readAnyway()
  let kept: Content = opened === null ? {} : read()
  let timer: ReturnType<typeof setTimeout> | undefined
  let work: Promise<unknown> = Promise.resolve()

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
  /** Runs only one request at a time, because two concurrent requests could create two drafts of the same mail. */
  const then = <Result>(act: () => Promise<Result>): Promise<Result> => {
    const done = work.then(act, act)
    work = done
    return done
  }
  /** Stores the draft. @returns false if the service did not store the draft. */
  const keep = <Result>(act: (content: Content) => Promise<Result>): Promise<Result | false> =>
    then(() => act(read())).catch((error: unknown) => {
      say(`Not kept: ${error instanceof Error ? error.message : error}`)
      return false
    })
  /**
   * Stores the text as a new draft if somebody has deleted or sent the draft in the meantime. If the response to the
   * send request was lost, the function finds out whether the service has sent the draft.
   * @returns `changed` if the service has sent the draft, and the new draft holds later changes of the user.
   */
  const storeAnyway = async (content: Content): Promise<'kept' | 'sent' | 'changed'> => {
    const isUnchanged = Object.keys(changesOf(kept, content)).length === 0
    try {
      if (isUnchanged && draftId !== null) await ask(path + at`/${draftId}`)
      else await store(content)
    } catch (error) {
      if (!isGone(error)) throw error
      const isSent = hasTriedToSend && (await wasSent())
      if (isUnchanged && isSent) return 'sent'
      draftId = null
      kept = {}
      hasTriedToSend = false
      await store(content)
      if (isSent) return 'changed'
    }
    return 'kept'
  }
  /**
   * Tells whether the service has sent the draft. To find out, the function repeats the send request, which does not
   * send the draft again.
   */
  const wasSent = (): Promise<boolean> =>
    ask(path + at`/${draftId!}/send`, { method: 'POST' }).then(
      () => true,
      (error: unknown) => {
        if (isGone(error)) return false
        throw error
      },
    )
  return {
    /** Stores the draft after a pause. The form calls `changed` when the user has typed. */
    changed: (): void => {
      clearTimeout(timer)
      timer = setTimeout(() => void keep(store), KEEP_AFTER_MS)
    },
    /**
     * Stores the typed text without a pause. @returns false if the service did not store the text, `sent` if the service
     * has sent the mail before, and `changed` if it has sent the mail before the user changed the text.
     */
    keep: (): Promise<'kept' | 'sent' | 'changed' | false> => {
      clearTimeout(timer)
      return keep(storeAnyway)
    },
    /** Tells whether the user would lose typed text by leaving the form. */
    isBegun: (): boolean => isMade || Object.keys(changesOf(initial, readAnyway())).length > 0,
    /**
     * Sends the draft. The service sends a draft only once, even if the console repeats the request. @throws {AskError}
     * for an error response. @throws if the service has sent the draft before the user changed it.
     */
    send: async (): Promise<{ deliveryStatus?: string }> => {
      clearTimeout(timer)
      await then(() => store(readAnyway())).catch(async (error: unknown) => {
        const isSent = isGone(error) && hasTriedToSend && (await wasSent())
        throw isSent ? new Error('The mail was accepted before, without the last changes') : error
      })
      hasTriedToSend = true
      return await ask(path + at`/${draftId!}/send`, { method: 'POST' })
    },
    /** Deletes the draft. @returns `sent` if the service has sent the mail before. */
    forget: async (): Promise<'deleted' | 'sent'> => {
      clearTimeout(timer)
      await work.catch(() => {})
      if (draftId === null) return 'deleted'
      try {
        await ask(path + at`/${draftId}`, { method: 'DELETE' })
      } catch (error) {
        if (!isGone(error)) throw error
        if (hasTriedToSend && (await wasSent())) return 'sent'
      }
      return 'deleted'
    },
  }
}

const isGone = (error: unknown): boolean => error instanceof AskError && error.status === 404

/**
 * Returns the fields of a draft that the user has changed. The function compares files only by object identity, because
 * they have many bytes.
 */
function changesOf(before: Content, now: Content): Content {
  const differs = ([name, value]: [string, unknown]) =>
    value !== before[name] &&
    (name === 'attachments' || JSON.stringify(value) !== JSON.stringify(before[name]))
  return Object.fromEntries(Object.entries(now).filter(differs))
}
