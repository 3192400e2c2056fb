import type { Config } from '../config/config.ts'
import type { Finding } from './finding.ts'

/**
 * Sets the minimum length of a secret that the doctor's report (the result of the self-check) hides, because a shorter
 * text could occur in the report by chance.
 */
const SECRET_CHARS_MIN = 4
const HIDDEN = '[hidden]'

/** Returns the secrets of the settings in every spelling that a message could contain. */
export function secretsOf(config: Config): string[] {
  const { databaseUrl, databaseReplicaUrl, relayUrl, chain, blobStore, bootstrap } = config
  const texts = [
    ...[databaseUrl, databaseReplicaUrl, relayUrl, ...chain.rpcUrls].flatMap(secretsOfUrl),
    ...chain.settlementKeys.flatMap((key) => [key, key.slice(2)]),
    ...(config.masterKeys ?? []).flatMap(({ key }) => forms(key.export())),
    ...(config.receiptSeeds ?? []).flatMap(({ seed }) => forms(Buffer.from(seed))),
    blobStore?.secretAccessKey,
    bootstrap.platformKey,
    bootstrap.projectKey,
    config.metricsToken,
    ...(config.smtp.http?.secrets ?? []).flatMap(({ secret }) => forms(Buffer.from(secret))),
    config.company?.clientSecret ?? undefined,
  ]
  return texts.filter((text) => text !== undefined && text.length >= SECRET_CHARS_MIN) as string[]
}

const forms = (bytes: Buffer): string[] => [bytes.toString('base64'), bytes.toString('hex')]

/**
 * Returns the parts of a URL that can be secret: the password, and in an HTTP URL also the user, the path and the
 * query. The path is included because the path of an RPC node's URL can contain an API key.
 */
function secretsOfUrl(text: string | null | undefined): string[] {
  if (typeof text !== 'string' || !URL.canParse(text)) return []
  const { username, password, pathname, search, protocol } = new URL(text)
  const isHttp = protocol.startsWith('http')
  const written = [password, ...(isHttp ? [username, ...pathname.split('/'), search.slice(1)] : [])]
  return written.flatMap((part) => [part, decoded(part)])
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/**
 * Removes the given secrets from the findings. No finding should contain a secret, so this is only an additional
 * protection.
 */
export const withoutSecrets = (
  findings: readonly Finding[],
  secrets: readonly string[],
): Finding[] => {
  const hide = (text: string) =>
    secrets.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text)
  return findings.map((finding) => ({
    ...finding,
    found: hide(finding.found),
    ...(finding.fix === undefined ? {} : { fix: hide(finding.fix) }),
  }))
}
