import type { Logger } from 'pino'
import { createDirectTransport, type DirectOptions } from './direct/directTransport.ts'
import { createRelayTransport, oneConsignment, type RelaySettings } from './relay/relayTransport.ts'
import type { Transport } from './transport.ts'

/**
 * Acts as a transport that reports every copy of a mail as sent but sends nothing. If the setting SMTP_RELAY_URL is
 * `capture`, the service uses this transport.
 */
const captureTransport: Transport = {
  route: 'relay',
  split: oneConsignment,
  send: ({ envelopes }, report) =>
    report(envelopes.map(({ to: address }) => ({ address, state: 'sent', error: null }))),
  leadsHere: async () => false,
  check: async () => {},
  close() {},
}

/**
 * Creates the mail transport for a relay URL. The value `capture` selects a transport that sends nothing. The value
 * `direct` selects a transport that sends to the mail hosts of the recipients’ domains. A URL
 * `smtp[s]://user:pass@host:port` names a smarthost that relays all mail.
 */
export function createTransport(
  settings: RelaySettings,
  direct: DirectOptions,
  log: Logger,
): Transport {
  const { relayUrl } = settings
  if (relayUrl === 'capture') return captureTransport
  if (relayUrl === 'direct') return createDirectTransport(direct)
  return createRelayTransport(settings, { ownName: direct.ownName, log })
}
