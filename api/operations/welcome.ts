import type { Config } from '../../shared/config/config.ts'
import { signInUrl } from '../../shared/people/signInLink.ts'
import { DEVNET_ACCOUNTS } from '../../shared/till/devnetAccounts.ts'
import type { FirstKeys } from '../../sql/account/bootstrap.ts'
import { LINK_MINUTES } from '../../sql/account/people/consoleSessions.ts'

/**
 * Returns the lines of the welcome text about the devnet. They may show the keys of the devnet, because these keys are
 * public and the money is worthless.
 */
function devnetLines({ chain }: Config): string {
  if (!chain.embeddedDevnet) return ''
  const { payer, payTo } = DEVNET_ACCOUNTS
  return `    Devnet         ${chain.rpcUrls[0]}        chain id 84532 (base-sepolia)
    Test payer     ${payer.address}        1,000,000 USDC to begin with
    Payer's key    ${payer.privateKey}
    Paid to        ${payTo.address}
`
}

/**
 * Returns the text that `npm start` prints when all parts of the service run.
 * @param signInToken is a sign-in token of the console. Null means that somebody has signed in already.
 */
export function welcome(config: Config, keys: FirstKeys, signInToken: string | null): string {
  const { baseUrl } = config.http
  const inbox = keys.inboxAddress ?? '(the first project key was rotated or deleted)'
  const consoleLine =
    signInToken === null
      ? `${baseUrl}/console        sign in: npm run console:login`
      : `${signInUrl(baseUrl, signInToken)}
                   good once, for ${LINK_MINUTES} minutes; npm run console:login prints another`
  const authorization = `-H 'Authorization: Bearer ${keys.projectKey}'`
  return `
  Purser is running.

    API            ${baseUrl}        documentation: ${baseUrl}/docs
    Console        ${consoleLine}
    SMTP           smtp://${config.smtp.host}:${config.smtp.port}
    Platform key   ${keys.platformKey}
    Project key    ${keys.projectKey}
    Inbox          ${inbox}
${devnetLines(config)}
  Try:
    curl ${authorization} ${baseUrl}/v0/whoami
    curl ${authorization} -H 'Content-Type: application/json' -d '{"to":["${inbox}"],"subject":"Hello","text":"To myself."}' ${baseUrl}/v0/messages/send
    curl ${authorization} ${baseUrl}/v0/messages

`
}
