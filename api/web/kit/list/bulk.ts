import { openDialog } from '../dialog.ts'
import { type Child, h } from '../dom.ts'
import { count } from '../format.ts'
import { toast } from '../ui.ts'

/** Most objects of one bulk act. */
export const BULK_MAX = 10_000
/** Requests at once. */
const AT_ONCE = 4

type Bulk = {
  title: string
  /** Says how many there are. */
  text: Child
  /** Further fields of the form. */
  fields?: Child
  action: string
  danger?: boolean
  ids: readonly string[]
  /** Acts on one. Each is a request of its own, so each has its entry in the log. */
  act: (id: string, form: FormData) => Promise<unknown>
  /** Reads the form before the first act. @throws {FieldError} */
  check?: (form: FormData) => void
  /** `40 messages are deleted`, for the number of those done. */
  done: (number: number) => string
  after: () => Promise<void>
}

/** Asks, then acts on many objects, one by one. It shows how far it is; Cancel stops it. */
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
  openDialog({
    title,
    action,
    danger,
    body: [h('p', {}, text), fields, bar, status],
    act: async (form) => {
      rest.check?.(form)
      bar.hidden = false
      const waiting = [...ids]
      const refused: unknown[] = []
      let ended = 0
      const work = async (): Promise<void> => {
        for (;;) {
          const id = isStopped ? undefined : waiting.shift()
          if (id === undefined) return
          await act(id, form).catch((error: unknown) => refused.push(error))
          ended++
          bar.value = ended
          status.textContent = `${count(ended)} of ${count(ids.length)}`
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
