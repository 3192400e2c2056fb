import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Asset, toAsset } from '../http/asset.ts'

const FOLDER = join(import.meta.dir, '../web')

/** Lists the style sheets in cascade order, because the later of two CSS rules with equal specificity wins. */
const STYLES = ['base', 'frame', 'parts', 'tables', 'screens', 'mail', 'forms', 'narrow']

/**
 * Loads the files of the console page by name. At the first request Bun bundles the TypeScript modules of `api/web/` in
 * memory, which takes some tens of milliseconds.
 */
async function loadAssets(): Promise<ReadonlyMap<string, Asset>> {
  const built = await Bun.build({
    entrypoints: [join(FOLDER, 'main.ts')],
    target: 'browser',
    format: 'esm',
    minify: true,
  })
  const script = await built.outputs[0]!.text()
  const read = (name: string) => readFile(join(FOLDER, name))
  const styles = await Promise.all(STYLES.map((name) => read(`style/${name}.css`)))
  const icon = await read('icon.svg')
  // The console also has a PNG icon, because MCP hosts show only PNG icons.
  const picture = await read('icon.png')
  return new Map([
    ['app.js', toAsset(new TextEncoder().encode(script), 'text/javascript; charset=utf-8')],
    ['style.css', toAsset(new Uint8Array(Buffer.concat(styles)), 'text/css; charset=utf-8')],
    ['icon.svg', toAsset(new Uint8Array(icon), 'image/svg+xml')],
    ['icon.png', toAsset(new Uint8Array(picture), 'image/png')],
  ])
}

let loading: Promise<ReadonlyMap<string, Asset>> | null = null

function assets(): Promise<ReadonlyMap<string, Asset>> {
  loading ??= loadAssets().catch((error) => {
    loading = null
    throw error
  })
  return loading
}

const HASHED = /^(\w+)\.([\w-]{22})\.(\w+)$/

/**
 * Returns the console page's file that has the given name. Returns `undefined` if the page has no such file. A file
 * name that contains a hash is valid only for bytes with this hash.
 */
export async function findAsset(
  name: string,
): Promise<{ asset: Asset; isHashed: boolean } | undefined> {
  const [, stem, hash, suffix] = HASHED.exec(name) ?? []
  const asset = (await assets()).get(hash === undefined ? name : `${stem}.${suffix}`)
  if (asset === undefined || (hash !== undefined && hash !== asset.hash)) return undefined
  return { asset, isHashed: hash !== undefined }
}

/**
 * Replaces each `{{name}}` in an HTML text by the address of the named file. The address of a file contains the hash of
 * the file.
 */
export async function withAddresses(html: string): Promise<string> {
  const found = await assets()
  return html.replace(/\{\{(\w+)\.(\w+)\}\}/g, (_, stem: string, suffix: string) => {
    const { hash } = found.get(`${stem}.${suffix}`)!
    return `/console/assets/${stem}.${hash}.${suffix}`
  })
}
