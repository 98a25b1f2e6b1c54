// Light, dark, or as the system has it.

export type Choice = 'system' | 'light' | 'dark';

const KEY = 'bigfleet-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

function stored(): Choice {
  try {
    const text = localStorage.getItem(KEY);
    return text === 'light' || text === 'dark' ? text : 'system';
  } catch {
    // Storage may be forbidden; then every visit follows the system.
    return 'system';
  }
}

class Theme {
  choice = $state<Choice>(stored());
  private systemDark = $state(system.matches);

  constructor() {
    system.addEventListener('change', () => {
      this.systemDark = system.matches;
      this.apply();
    });
    this.apply();
  }

  get dark(): boolean {
    return this.choice === 'dark' || (this.choice === 'system' && this.systemDark);
  }

  /** System, then the other one, then back. */
  next(): void {
    const order: Choice[] = ['system', 'light', 'dark'];
    this.choice = order[(order.indexOf(this.choice) + 1) % order.length] ?? 'system';
    try {
      if (this.choice === 'system') localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, this.choice);
    } catch {
      // As above.
    }
    this.apply();
  }

  private apply(): void {
    document.documentElement.dataset.theme = this.dark ? 'dark' : 'light';
  }
}

export const theme = new Theme();
