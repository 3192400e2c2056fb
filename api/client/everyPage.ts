/**
 * Iterates over all entries of a list that has several pages. The function loads a page only when the iteration reaches
 * it.
 * @param read loads the page that a page token names. Without a page token, `read` loads the first page.
 */
export async function* everyPage<Page extends { nextPageToken?: string }, Item>(
  read: (pageToken: string | undefined) => Promise<Page>,
  items: (page: Page) => readonly Item[],
  pageToken?: string,
): AsyncGenerator<Item, void, undefined> {
  let token = pageToken
  do {
    const page = await read(token)
    yield* items(page)
    token = page.nextPageToken
  } while (token !== undefined)
}
