import type { Logger } from 'pino'
import { createDirectTransport, type DirectOptions } from './directTransport.ts'
import { createRelayTransport, oneConsignment, type RelaySettings } from './relayTransport.ts'
import type { Transport } from './transport.ts'

/** Capture: stores the bytes with the message and sends nothing. */
const captureTransport: Transport = {
  route: 'relay',
  split: oneConsignment,
  send: ({ envelopes }, report) =>
    report(envelopes.map(({ to: address }) => ({ address, state: 'sent', error: null }))),
  check: async () => {},
  close() {},
}

/**
 * The transport for a relay URL: `capture`, `direct` to the hosts of the recipients' domains, or a smarthost as
 * `smtp[s]://user:pass@host:port`.
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
