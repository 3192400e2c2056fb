import { h } from './dom.ts'
import { exactly } from './format.ts'

/** The service was not reached: what is shown stays. */
export class OfflineError extends Error {
  constructor() {
    super('The service cannot be reached')
  }
}

const ASK_AGAIN_MS = 2_000

/** Fires `back` when the service answers again. */
export const connection = new EventTarget()

/** Says so while the service is not reached. */
export const offlineBar = h('div', { class: 'offline', role: 'status' })

let asking: ReturnType<typeof setTimeout> | undefined

/** Hears of each request whether it was answered. */
export function noteAnswer(isAnswered: boolean): void {
  const isOffline = offlineBar.childElementCount > 0
  if (isAnswered !== isOffline) return
  if (isAnswered) {
    clearTimeout(asking)
    offlineBar.replaceChildren()
    connection.dispatchEvent(new Event('back'))
    return
  }
  offlineBar.replaceChildren(
    h('p', {}, `Offline since ${exactly(new Date())}. What is shown stays; it may be old.`),
  )
  const again = async () => {
    // Any answer says that the service is back.
    await fetch('/console/api/session', { headers: { 'x-purser-console': 'watching' } }).then(
      () => noteAnswer(true),
      () => {
        asking = setTimeout(again, ASK_AGAIN_MS)
      },
    )
  }
  asking = setTimeout(again, ASK_AGAIN_MS)
}

addEventListener('offline', () => noteAnswer(false))
