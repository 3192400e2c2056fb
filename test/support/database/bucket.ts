import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import S3rver from 's3rver'
import { openObjectStore } from '../../../shared/blobs/objectStore.ts'
import { silentLog } from '../logs.ts'
import { startTcpProxy, type TcpProxy } from '../process/tcpProxy.ts'
import { waitFor } from '../waitFor.ts'

const NAME = 'mail'
/** Holds the account name that s3rver, the test’s S3 server, accepts. */
const ACCOUNT = 'S3RVER'

/**
 * Describes a bucket on a real S3-compatible server, behind a proxy whose connections the test can cut.
 */
export type Bucket = AsyncDisposable & {
  proxy: TcpProxy
  /** Holds the environment variables with which the service uses this bucket. */
  env: { BLOB_STORE: string; S3_ACCESS_KEY_ID: string; S3_SECRET_ACCESS_KEY: string }
  store: ReturnType<typeof openObjectStore>
  /** Returns the names of all objects in the bucket. */
  names(): string[]
  /** Returns the bytes of an object in the bucket. */
  bytesOf(name: string): Buffer
  path(name: string): string
}

export async function startBucket(): Promise<Bucket> {
  const directory = mkdtempSync(join(tmpdir(), 'purser-bucket-'))
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: NAME }],
  })
  answerAfterWrite(server)
  const { port } = await server.run()
  const proxy = await startTcpProxy(port)
  const endpoint = `http://127.0.0.1:${proxy.port}`
  const contents = join(directory, NAME)
  const path = (name: string) => join(contents, `${name}._S3rver_object`)
  return {
    proxy,
    env: {
      BLOB_STORE: `s3://${NAME}/purser?endpoint=${endpoint}`,
      S3_ACCESS_KEY_ID: ACCOUNT,
      S3_SECRET_ACCESS_KEY: ACCOUNT,
    },
    store: openObjectStore(
      {
        bucket: NAME,
        prefix: 'purser/',
        endpoint,
        region: 'us-east-1',
        virtualHosted: false,
        accessKeyId: ACCOUNT,
        secretAccessKey: ACCOUNT,
      },
      fetch,
      silentLog,
    ),
    names: () =>
      (readdirSync(contents, { recursive: true }) as string[])
        .filter(
          (name) => name.endsWith('._S3rver_object') && statSync(join(contents, name)).isFile(),
        )
        .map((name) => name.replace(/\._S3rver_object$/, '')),
    bytesOf: (name) => readFileSync(path(name)),
    path,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]()
      await server.close()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

/**
 * Makes the test's S3 server answer a PUT only after the object is in its file. s3rver would answer earlier, so a
 * reader could get no object or an empty one.
 */
function answerAfterWrite({ store }: S3rver): void {
  const put = store.putObject.bind(store)
  store.putObject = async (object) => {
    const written = await put(object)
    const file = store.getResourcePath(object.bucket, object.key, 'object')
    await waitFor(
      'the object in its file',
      async () => existsSync(file) && statSync(file).size === written.size,
    )
    return written
  }
}
