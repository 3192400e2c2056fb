import { h } from './dom.ts'
import { exactly } from './format.ts'

/**
 * Reports that the console page could not reach the service. While the service is unreachable, the old content stays on
 * the page.
 */
export class OfflineError extends Error {
  constructor() {
    super('The service cannot be reached')
  }
}

const ASK_AGAIN_MS = 2_000

/** Fires the event `back` when the service responds again after an outage. */
export const connection = new EventTarget()

/** Tells the user that the service cannot be reached. */
export const offlineBar = h('div', { class: 'offline', role: 'status' })

let asking: ReturnType<typeof setTimeout> | undefined

/** Records for each request whether the service responded. */
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
    // Any response, even an error response, proves that the console can reach the service again.
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
