import { h } from './dom.ts'

const STORED = 'purser-theme'
type Theme = 'light' | 'dark'

const system = (): Theme => (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')
const stored = (): Theme | null => {
  const value = localStorage.getItem(STORED)
  return value === 'light' || value === 'dark' ? value : null
}

/** Applies the stored theme of the console. If no theme is stored, applies the theme of the operating system. */
export function applyTheme(theme: Theme | null = stored()): void {
  if (theme === null) delete document.documentElement.dataset.theme
  else document.documentElement.dataset.theme = theme
}

/** Makes a button that switches between the light and the dark theme. */
export function themeButton(): HTMLButtonElement {
  const other = (): Theme => ((stored() ?? system()) === 'dark' ? 'light' : 'dark')
  const label = () => `${other() === 'dark' ? 'Dark' : 'Light'} theme`
  const made = h(
    'button',
    {
      type: 'button',
      class: 'quiet',
      on: {
        click: () => {
          const theme = other()
          localStorage.setItem(STORED, theme)
          applyTheme(theme)
          made.textContent = label()
        },
      },
    },
    label(),
  )
  return made
}
