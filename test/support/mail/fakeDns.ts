import type { Dns } from '../../../workers/mail/dns.ts'

/** Holds the records of a DNS zone. A query for a name in `failing` gets the response SERVFAIL. */
export type Zone = {
  mx?: Record<string, [priority: number, exchange: string][]>
  a?: Record<string, string[]>
  txt?: Record<string, string[]>
  failing?: string[]
}

/** Makes a fake DNS server that answers from a zone, which the test may change at any time. */
export function fakeDns(zone: Zone): Dns {
  const look = async <Record>(
    table: Readonly<globalThis.Record<string, Record[]>> = {},
    name: string,
  ) => {
    if (zone.failing?.includes(name))
      throw Object.assign(new Error('no answer'), { code: 'ESERVFAIL' })
    return table[name] ?? []
  }
  return {
    mx: async (name) =>
      (await look(zone.mx, name)).map(([priority, exchange]) => ({ priority, exchange })),
    addresses: (name) => look(zone.a, name),
    txt: (name) => look(zone.txt, name),
  }
}
