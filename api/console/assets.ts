import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Asset, toAsset } from '../http/asset.ts'

const FOLDER = join(import.meta.dir, '../web')

/** In cascade order: of two rules with equal specificity the later one wins. */
const STYLES = ['base', 'frame', 'parts', 'tables', 'screens', 'mail', 'forms', 'narrow']

/**
 * The page's files, by name. Bun bundles the TypeScript modules of `api/web/` in memory at the first request, in about ten
 * milliseconds.
 */
async function loadAssets(): Promise<ReadonlyMap<string, Asset>> {
  const built = await Bun.build({
    entrypoints: [join(FOLDER, 'main.ts')],
    target: 'browser',
    format: 'esm',
  })
  const script = await built.outputs[0]!.text()
  const read = (name: string) => readFile(join(FOLDER, name))
  const styles = await Promise.all(STYLES.map((name) => read(`style/${name}.css`)))
  const icon = await read('icon.svg')
  // Hosts of MCP show this form alone.
  const picture = await read('icon.png')
  return new Map([
    ['app.js', toAsset(new TextEncoder().encode(script), 'text/javascript; charset=utf-8')],
    ['style.css', toAsset(new Uint8Array(Buffer.concat(styles)), 'text/css; charset=utf-8')],
    ['icon.svg', toAsset(new Uint8Array(icon), 'image/svg+xml')],
    ['icon.png', toAsset(new Uint8Array(picture), 'image/png')],
  ])
}

let loading: Promise<ReadonlyMap<string, Asset>> | null = null

/** The page's file of that name, or undefined. */
export async function findAsset(name: string): Promise<Asset | undefined> {
  loading ??= loadAssets().catch((error) => {
    loading = null
    throw error
  })
  return (await loading).get(name)
}
