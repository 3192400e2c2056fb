/** Describes the settings of a process as types. The file config.ts reads them from the environment variables. */
import type { MtaStsMode } from '../mail/mtaSts.ts'
import type { PurseConsent } from '../oauth/oauthScopes.ts'
import type { MasterKey } from '../vault/envelope.ts'
import type { BlobStoreSettings } from './blobStoreSettings.ts'
import type { CertificateFiles, RelayTls } from './mailTls.ts'
import type { RetentionSettings } from './retentionSettings.ts'

/** Holds a named Ed25519 seed of 32 bytes. The private key from a receipt seed signs receipts. */
export type ReceiptSeed = { id: string; seed: Uint8Array }

/** Holds a named secret that authenticates mail delivered over HTTP. */
type InboundSecret = { id: string; secret: Uint8Array }

/** Holds the settings of a process. Each process reads its settings once when it starts (docs/settings.md). */
export type Config = {
  production: boolean
  http: { port: number; host: string; baseUrl: string }
  /**
   * Holds the address at which every process also serves `/healthz`. Null means that the processes do not serve
   * `/healthz`.
   */
  health: { port: number; host: string } | null
  smtp: {
    port: number
    host: string
    maxConnections: number
    maxConnectionsPerIp: number
    /**
     * Holds the maximum number of messages a minute that one network may send. The field `messagesPerInbox` holds the
     * maximum number that one inbox may receive. The value 0 means no limit.
     */
    messagesPerIp: number
    messagesPerInbox: number
    /**
     * Limits the bytes of large messages that one network may send in a second, and that one inbox may receive in a
     * second. The value 0 means no limit.
     */
    largeBytesPerS: number
    /** Names the PEM files for STARTTLS. Null means that the SMTP listener offers no STARTTLS. */
    tls: CertificateFiles | null
    /** Holds the address at which mail services deliver mail over HTTP. Null means that mail over HTTP is off. */
    http: {
      port: number
      secrets: readonly InboundSecret[]
      /**
       * Names the Amazon SNS topics through which Amazon SES may deliver mail, and the S3 bucket that holds large mail
       * of these topics. Null means that the operator has set no Amazon SES topic.
       */
      ses: { topics: readonly string[]; bucket: BlobStoreSettings | null } | null
    } | null
  }
  dataDir: string
  databaseUrl: string | undefined
  /**
   * Holds the streaming replica of the database from which the API reads. Null means that the API reads from the
   * primary.
   */
  databaseReplicaUrl: string | null
  databasePoolSize: number
  /**
   * Holds the object store for large contents of mail. Null means that the database holds these contents, or that the
   * process does not use them.
   */
  blobStore: BlobStoreSettings | null
  mailDomain: string
  /** Holds the host name of this machine for EHLO and for the MX records of the mail domains. */
  mailHostname: string
  /** Holds the mode of the MTA-STS policy of the service's own domains. */
  mtaSts: MtaStsMode
  /** Holds the inbox that receives the mail of `postmaster@mailDomain` if no inbox has the postmaster address. */
  postmaster: string | undefined
  /**
   * Holds the URL of a smarthost, or one of the two words `capture` and `direct`. With `capture`, the service stores
   * outgoing mail and sends nothing. With `direct`, the service sends mail to the MX hosts of the recipients' domains.
   */
  relayUrl: string
  /**
   * Tells whether the service may send mail to the smarthost without TLS. By default, TLS is `required` if the
   * smarthost's URL holds credentials.
   */
  relayTls: RelayTls
  /**
   * Names a PEM file with the CA of the smarthost, or with the smarthost's own certificate. Undefined means that the
   * service trusts the system's CAs.
   */
  relayCaFile: string | undefined
  chain: {
    /** Lists the URLs of one chain node, or of several chain nodes that must agree. */
    rpcUrls: readonly string[]
    /** Holds the number of chain nodes that must give the same result before the service moves money. */
    rpcQuorum: number
    /** Tells whether the chain node is the devnet that `npm start` runs. */
    embeddedDevnet: boolean
    devnetPort: number
    /**
     * Tells whether the operator has set `DEVNET_PORT`. If the operator has not set `DEVNET_PORT`, the devnet may use
     * another port.
     */
    devnetPortIsGiven: boolean
    /** Holds the private keys of the gas wallets. */
    settlementKeys: readonly `0x${string}`[]
    /**
     * Lists the factories, in lower case, that may deploy a payer's smart wallet at the gas wallets' expense
     * (ERC-6492).
     */
    walletFactories: readonly string[]
    /** Lists wallet addresses, in lower case, that no purse (a project's spending wallet) may pay. */
    deniedPayees: readonly string[]
  }
  /**
   * Holds the Ed25519 seeds of the receipt keys. The first seed in the list signs receipts. Undefined means that the
   * process generates a seed, which happens only in development.
   */
  receiptSeeds: readonly ReceiptSeed[] | undefined
  /**
   * Holds the master keys. The first master key encrypts new secrets. Undefined means that the process generates a
   * master key, which happens only in development.
   */
  masterKeys: readonly MasterKey[] | undefined
  /** Holds the lowest price in atomic USDC that a seller may set for an endpoint. The value 0 allows every price. */
  minPriceAtomic: number
  /** Limits the milliseconds for which an API call to redeem a payment waits for the settlement on the chain. */
  settlementWaitMs: number
  /**
   * Lists the OAuth scopes of the purse (a project's spending wallet) that an owner may give to an OAuth client, such
   * as a chat program.
   */
  oauthPurseScopes: readonly PurseConsent[]
  bootstrap: { platformKey: string | undefined; projectKey: string | undefined }
  /**
   * Describes the company's identity provider (OpenID Connect). Null means that the operator has set no identity
   * provider. A null `clientSecret` means that the service is a public client.
   */
  company: { issuer: string; clientId: string; clientSecret: string | null } | null
  /**
   * Holds the usage limits. The service counts requests for each identity, and failed authentications for each IP
   * address. The value 0 turns a limit off.
   */
  limits: {
    requestsPerMinute: number
    authFailuresPerMinute: number
    /**
     * Holds the maximum number of requests a minute that one identity may send to the x402 facilitator. The service
     * counts requests to the facilitator separately from other requests.
     */
    facilitatorRequestsPerMinute: number
    /**
     * Holds the maximum number of all redeem calls of a project in a minute. The separate limit on calls that redeem a
     * new payment is `requestsPerMinute`.
     */
    redeemCallsPerMinute: number
    /** Limits the requests of one person to the console. The value 0 turns the limit off. */
    consoleRequestsPerMinute: number
    /** Holds the maximum number of recipients to whom a project may send mail in a UTC day. Null means no limit. */
    recipientsPerDay: number | null
    /** Holds the maximum number of bytes of mail that a project may store. Null means no limit. */
    storageBytes: number | null
    /**
     * Limits how many payments of one project the service may accept for settlement in a UTC day. The field `dailyGas`
     * limits the gas of these settlements in a UTC day. The gas for calls of the project's purse counts separately,
     * with the same limit. Null means no limit.
     */
    dailySettlements: number | null
    dailyGas: number | null
    /**
     * Limits the bytes of a project's attachments that the service reads in a UTC day. The field `dailyTextSeconds`
     * limits the seconds for which the service reads a project's attachments in a UTC day. Null means no limit.
     */
    dailyTextBytes: number | null
    dailyTextSeconds: number | null
  }
  /**
   * Holds the number of days for which the service keeps rows of each retention class. Null means that the default
   * number of days applies. Only the settings of the worker processes take effect, because these processes remove the
   * rows.
   */
  retention: RetentionSettings
  /** Tells whether webhooks and sellers' endpoints may be at private addresses (in development). */
  allowPrivateNetworks: boolean
  trustedProxies: string[]
  /**
   * Lists the DNS servers that look up senders, hosts and domains. With an empty list, the service uses the system's
   * DNS servers.
   */
  dnsServers: string[]
  /**
   * Holds the URL of an internet page that the doctor (the service's self-check) requests. The response tells the
   * doctor the time of the page's server and the public address of this service.
   */
  outsideUrl: string
  /**
   * Selects which fields the API responses contain. With `full`, the responses also hold message fields that the API's
   * specification does not define.
   */
  answers: 'standard' | 'full'
  /** Holds the token that a request for `/metrics` must contain. Undefined means that `/metrics` needs no token. */
  metricsToken: string | undefined
  /** Holds the base URL of an OTLP collector. Null means that the service does not trace requests. */
  traceEndpoint: string | null
  logLevel: string
}
