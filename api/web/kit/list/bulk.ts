import { openDialog } from '../dialog.ts'
import { type Child, h } from '../dom.ts'
import { count } from '../format.ts'
import { toast } from '../ui.ts'

/** Sets the maximum number of objects that one bulk action changes. */
export const BULK_MAX = 10_000
/** Sets the maximum number of concurrent requests of a bulk action. */
const AT_ONCE = 4

type Bulk = {
  title: string
  /** Holds the text that tells the user how many objects the bulk action changes. */
  text: Child
  /** Adds fields to the form of the dialog. */
  fields?: Child
  action: string
  danger?: boolean
  ids: readonly string[]
  /**
   * Performs the bulk action on one object. Each object has a separate request, and therefore a separate entry in the
   * audit log.
   */
  act: (id: string, form: FormData) => Promise<unknown>
  /**
   * Checks the form of the bulk action before the console sends any request. @throws {FieldError} for an invalid field.
   */
  check?: (form: FormData) => void
  /** Returns the text that reports the number of finished objects, for example `40 messages are deleted`. */
  done: (number: number) => string
  after: () => Promise<void>
}

/**
 * Asks the user for confirmation, then acts on many objects one by one. The dialog shows the progress. The button
 * Cancel stops the bulk action.
 */
export function bulk({
  title,
  text,
  fields,
  action,
  danger = false,
  ids,
  act,
  ...rest
}: Bulk): void {
  const bar = h('progress', { max: ids.length, value: 0, 'aria-label': action, hidden: true })
  const status = h('p', { class: 'note', role: 'status' })
  let isStopped = false
  // If the user repeats the bulk action, the console leaves out the objects for which it has already succeeded.
  const left = new Set(ids)
  openDialog({
    title,
    action,
    danger,
    body: [h('p', {}, text), fields, bar, status],
    act: async (form) => {
      rest.check?.(form)
      bar.hidden = false
      const waiting = [...left]
      const number = waiting.length
      bar.max = number
      const refused: unknown[] = []
      let ended = 0
      const work = async (): Promise<void> => {
        for (;;) {
          const id = isStopped ? undefined : waiting.shift()
          if (id === undefined) return
          await act(id, form).then(
            () => left.delete(id),
            (error: unknown) => refused.push(error),
          )
          ended++
          bar.value = ended
          status.textContent = `${count(ended)} of ${count(number)}`
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, work))
      await rest.after()
      const done = ended - refused.length
      if (refused.length === 0) return () => toast(rest.done(done))
      const [first] = refused
      throw new Error(
        `${rest.done(done)}; ${count(refused.length)} refused: ${first instanceof Error ? first.message : first}`,
      )
    },
    closed: () => {
      isStopped = true
    },
  })
}
