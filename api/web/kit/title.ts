/** Names the screen in the browser's tab, the narrowest part first; empty parts are left out. */
export function setTitle(...parts: (string | null | undefined)[]): void {
  document.title = [...parts.filter((part) => part != null && part.trim() !== ''), 'Purser'].join(
    ' – ',
  )
}
