// Tabs of a recording's page. Which there are, their names and their order stand in the page's data, as Pitwall's list
// of views has them (lib/pitwall/views.rb). Here is what draws each, and where it has something to show. A tab with
// columns is a plain table.

import { AboutView } from "./views/about.js"
import { CachesView } from "./views/caches.js"
import { FlameView } from "./views/flame.js"
import { GcView } from "./views/gc.js"
import { GrowthView } from "./views/growth.js"
import { LabelsView } from "./views/labels.js"
import { MethodsView } from "./views/methods.js"
import { ObjectsView } from "./views/objects.js"
import { PlainTable } from "./views/plain.js"
import { QueriesView } from "./views/queries.js"
import { RequestsView } from "./views/requests.js"
import { SourceView } from "./views/source.js"
import { SyscallsView } from "./views/syscalls.js"
import { TestsView } from "./views/tests.js"
import { ThreadsView } from "./views/threads.js"
import { TreeView } from "./views/tree.js"

// By key: the class; shown(recording): whether there is something to show; waits: threads' waiting may be left out of
// it.
const DRAWN = {
  flame: { View: FlameView, waits: true },
  tree: { View: TreeView, waits: true },
  methods: { View: MethodsView, waits: true },
  // Calls have no lines.
  source: { View: SourceView, waits: true, shown: ({ sampled, about }) => sampled || about.objects },
  threads: { View: ThreadsView, shown: ({ lanes }) => lanes.length },
  requests: { View: RequestsView, shown: ({ marks, works }) => marks.length || works.length },
  queries: { View: QueriesView, shown: ({ queries }) => queries.length },
  tests: { View: TestsView, shown: ({ about }) => about.tests },
  labels: { View: LabelsView, shown: ({ labelNames }) => labelNames.length },
  gc: { View: GcView, shown: ({ runs }) => runs.length },
  objects: { View: ObjectsView, shown: ({ about }) => about.objects },
  growth: { View: GrowthView, shown: ({ about }) => about.growth },
  caches: { View: CachesView, shown: ({ about }) => about.caches },
  syscalls: { View: SyscallsView, shown: ({ about }) => about.syscalls },
  about: { View: AboutView },
}

// Tabs of a recording, from left to right: {key, title, refuses, waits, make(app)}. refuses: filters that change
// nothing.
export function tabsOf(recording) {
  return recording.about.tabs
    .map((tab) => ({ ...tab, ...(tab.columns ? {} : DRAWN[tab.key]) }))
    .filter((tab) => tab.columns || tab.View)
    .filter((tab) => (recording.weights.length || !tab.weighs) && (!tab.shown || tab.shown(recording)))
    .map(({ key, title, waits, refuses, View, ...tab }) => ({
      key,
      title,
      refuses: refuses ?? [],
      waits: Boolean(waits),
      make: (app) => (View ? new View(app) : new PlainTable(app, { title, ...tab })),
    }))
}
