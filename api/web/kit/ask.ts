/**
 * Sends requests of the console page to the service. The browser adds the session cookie to each request. An additional
 * HTTP header proves that the console page sent the request.
 */

import { noteAnswer, OfflineError } from './offline.ts'

/** Describes an error response of the service. The console page shows the message of the error. */
export class AskError extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** Fires the event `end` when the console session has ended. */
export const signedOut = new EventTarget()

type Asked = {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  body?: unknown
  /**
   * Tells whether a timer, and not the user, caused the request. Such a request does not extend the console session.
   */
  watching?: boolean
  signal?: AbortSignal
}

async function request(path: string, asked: Asked): Promise<Response> {
  const { method = 'GET', body, watching = false, signal } = asked
  const response = await reach(`/console/api${path}`, {
    method,
    headers: {
      'x-purser-console': watching ? 'watching' : '1',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...(signal === undefined ? {} : { signal }),
  })
  if (response.ok) return response
  const { message } = (await response.json().catch(() => ({}))) as { message?: string }
  if (response.status === 401) signedOut.dispatchEvent(new Event('end'))
  throw new AskError(response.status, message ?? `The service answered ${response.status}`)
}

/** Sends one request to the service. @throws {OfflineError} if the console page cannot reach the service. */
async function reach(url: string, init: RequestInit): Promise<Response> {
  try {
    const response = await fetch(url, init)
    noteAnswer(true)
    return response
  } catch (error) {
    if (init.signal?.aborted === true) throw error
    noteAnswer(false)
    throw new OfflineError()
  }
}

/** Requests JSON from the service. @throws {AskError} for an error response. */
export async function ask<Answer>(path: string, asked: Asked = {}): Promise<Answer> {
  const response = await request(path, asked)
  return (response.status === 204 ? undefined : await response.json()) as Answer
}

/** Requests bytes from the service. @throws {AskError} for an error response. */
export const askBytes = async (path: string): Promise<Blob> => (await request(path, {})).blob()

/** Returns a URL path in which the inserted values are percent-encoded, as in at`/projects/${id}/v0/vault/${name}`. */
export const at = (parts: TemplateStringsArray, ...values: (string | number)[]): string =>
  parts.reduce((path, part, n) => path + encodeURIComponent(values[n - 1]!) + part)

/**
 * Returns the fields of a form that differ from their first values. A form sends only these fields, because another
 * person may have changed others since the form opened.
 */
export const changesOf = <Name extends string>(
  shown: Record<NoInfer<Name>, unknown>,
  given: Record<Name, unknown>,
): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(given).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(shown[name as NoInfer<Name>]),
    ),
  )

/** Downloads a file. The browser saves the bytes of the file, and never renders or runs these bytes. */
export async function save(path: string, filename: string): Promise<void> {
  const bytes = await askBytes(path)
  const url = URL.createObjectURL(new Blob([bytes], { type: 'application/octet-stream' }))
  const link = document.createElement('a')
  link.setAttribute('href', url)
  link.setAttribute('download', filename)
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
