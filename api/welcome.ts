import type { Config } from '../shared/config.ts'
import type { FirstKeys } from '../sql/bootstrap.ts'

/** What `npm start` prints once everything is up. */
export function welcome(config: Config, keys: FirstKeys): string {
  const { baseUrl } = config.http
  const inbox = keys.inboxAddress ?? '(the first project key was rotated or deleted)'
  const authorization = `-H 'Authorization: Bearer ${keys.projectKey}'`
  return `
  Purser is running.

    API            ${baseUrl}        documentation: ${baseUrl}/docs
    SMTP           smtp://${config.smtp.host}:${config.smtp.port}
    Platform key   ${keys.platformKey}
    Project key    ${keys.projectKey}
    Inbox          ${inbox}

  Try:
    curl ${authorization} ${baseUrl}/v0/whoami
    curl ${authorization} -H 'Content-Type: application/json' -d '{"to":["${inbox}"],"subject":"Hello","text":"To myself."}' ${baseUrl}/v0/messages/send
    curl ${authorization} ${baseUrl}/v0/messages

`
}
