import type { Logger } from 'pino'
import { createDirectTransport, type DirectOptions } from './directTransport.ts'
import { createRelayTransport, oneConsignment, type RelaySettings } from './relayTransport.ts'
import type { Transport } from './transport.ts'

/** Counts every copy as sent and sends nothing. SMTP_RELAY_URL names this transport `capture`. */
const captureTransport: Transport = {
  route: 'relay',
  split: oneConsignment,
  send: ({ envelopes }, report) =>
    report(envelopes.map(({ to: address }) => ({ address, state: 'sent', error: null }))),
  check: async () => {},
  close() {},
}

/**
 * Creates the transport for a relay URL. The value `capture` sends nothing. The value `direct` sends to the hosts of
 * the recipients' domains. A URL `smtp[s]://user:pass@host:port` names a smarthost.
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
