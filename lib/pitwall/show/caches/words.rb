# frozen_string_literal: true

require "pitwall/record/vm_counter"

module Pitwall
  module Show
    # Words about changes that empty caches: what each kind is, what it empties, and what to do about it.
    module CachesWords
      # kind => [in a table, what it empties]
      KINDS = {
        "constant_set" => ["constant set", :constants], "constant_removed" => ["constant removed", :constants],
        "constant_autoload" => ["autoload registered", :constants],
        "constant_visibility" => ["constant made private, public or deprecated", :constants],
        "constant_changed" => ["constant changed", :constants],
        "class_changed" => ["class made or mixed in by C code", :classes],
        "class_made" => ["class made", :classes], "module_made" => ["module made", :classes],
        "singleton_class_made" => ["singleton class made", :classes], "class_copied" => ["class copied", :classes],
        "module_included" => ["module included", :ancestors], "module_prepended" => ["module prepended", :ancestors],
        "object_extended" => ["object extended", :ancestors], "refinement_made" => ["refinement made", :ancestors],
        "refinement_used" => ["refinement used", :ancestors], "method_added" => ["method defined", :methods],
        "method_aliased" => ["method aliased", :methods], "method_removed" => ["method removed", :methods],
        "method_undefined" => ["method undefined", :methods],
        "method_visibility" => ["method made private, protected or public", :methods],
        "operator_redefined" => ["basic operator redefined", :operators],
        "class_variable_set" => ["class variable set", :class_variables],
        "shape_made" => ["object shape made", :shapes],
        "tracing_enabled" => ["tracing enabled", :tracing]
      }.freeze

      # What to do, in the order in which to try: do without it, do it once, do it where it is needed, cache it.
      ADVICE = {
        constants: "Constants: leave the change out; set the constant once, while the program boots; set it in the " \
                   "branch that needs it. Keep the value in an instance variable only if none of these is possible.",
        classes: "Classes: write the class down instead of making it while the program runs; make it once, at boot; " \
                 "make it only where it is used. Memoize it last, by what it depends on.",
        ancestors: "Mixins: call a module's function (module_function) instead of extending an object; include once, " \
                   "in the class body; extend only the objects that need it. Keep extended objects last.",
        methods: "Methods: pass a block or a lambda instead of defining a method; define once, at boot; define only " \
                 "on the class that needs it (few subclasses). Check method_defined? last.",
        operators: "Operators: do not redefine a basic operator: all code with this operator becomes slower until " \
                   "the process ends. Use a method of another name, or a refinement.",
        class_variables: "Class variables: use an instance variable of the class; set it once, in the class body, " \
                         "before subclasses set theirs.",
        shapes: "Shapes: set all instance variables in `initialize`, in one order; set them once; do not name them " \
                "by data (instance_variable_set, OpenStruct): use a Hash or a Struct.",
        tracing: "Tracing: enable no TracePoint while requests are served: it discards compiled code. Enable it with " \
                 "target: where it is needed."
      }.freeze

      # Pitwall's counters.
      OWN = {
        "constants_changed" => "constants set, removed, hidden", "methods_changed" => "methods changed",
        "ancestors_changed" => "modules mixed in", "classes_made" => "classes and modules made",
        "tracing_enabled" => "tracing enabled"
      }.freeze

      module_function

      # What to say where no change is to be shown.
      #: (Analyse::Caches) -> String
      def nothing(caches)
        return "No change empties a cache here." unless caches.only_counted?

        "Changes were counted only, without their lines."
      end

      # "method_added" → "method defined"
      #: (String) -> String
      def kind(name) = KINDS.fetch(name) { [name] }.first

      # What a kind of change empties: :methods
      #: (String) -> Symbol?
      def group(kind) = KINDS[kind]&.last

      # Sentences for these kinds of change, each once.
      #: (Array[String]) -> Hash[Symbol, String]
      def advice(kinds) = kinds.filter_map { |kind| group(kind) }.uniq.to_h { |group| [group, ADVICE.fetch(group)] }

      # By what rows are ordered, and what the recording can't tell.
      #: (Analyse::Caches) -> String
      def order(caches)
        keys = []
        keys << "time in samples at the line" if caches.cost.sampled?
        keys << "constant cache misses that follow (at most: code that runs for the first time misses, too)" if
          caches.cost.misses?
        "Order: #{[*keys, "caches emptied, as Ruby counts them", "changes"].join("; ")}."
      end

      NO_TIME = "Without samples the recording can't tell how much time callers lose"

      # "12.3 ms ±20%", "0 s" where no sample was at the line.
      #: (Analyse::CachesCost::Figures) -> String
      def time(figures)
        return "" if figures.time_ns.nil?
        return Units.duration(0) if figures.doubt.nil?

        "#{Units.duration(figures.time_ns)} ±#{[(figures.doubt * 100).round, 100].min}%"
      end

      # "410", "" where this Ruby does not count misses
      #: (Analyse::CachesCost::Figures) -> String
      def misses(figures) = figures.misses ? "≤#{Units.count(figures.misses)}" : ""

      # "class_serial" → "class serials (method caches emptied)"
      #: (String) -> String
      def counter(name) = Record::VM_COUNTERS[name]&.title || OWN.fetch(name, name)

      # Is it one of Pitwall's counters?
      #: (String) -> bool
      def own?(name) = OWN.key?(name)

      # What is missing in the figures.
      #: (Analyse::Caches) -> Array[String]
      def losses(caches)
        words = []
        words << "#{Units.things(caches.lost, "change")} could not be recorded" if caches.lost.positive?
        unblamed = caches.unblamed
        unblamed.each { |name, count| words << "#{Units.count(count)} of #{counter(name)} have no line" }
        if caches.rests.positive? && !caches.after.all?
          words << "lines were not compared all the time: a change that happened once may be missing"
        elsif caches.rests.positive? && unblamed.any?
          words << "lines were not compared while nothing changed"
        end
        words
      end

      # Notes on what is counted.
      #: (Analyse::Caches) -> Array[String]
      def notes(caches)
        words = []
        own = caches.own
        unless own.empty?
          list = own.map { |name, count| "#{Units.count(count)} #{counter(name)}" }.join(", ")
          words << "Pitwall's own code, left out: #{list}"
        end
        missing = caches.not_counted
        words << "not counted by this Ruby: #{missing.join(", ")}" unless missing.empty?
        words
      end

      # "after boot", "after 20 requests"
      #: (Analyse::Caches::After) -> String?
      def after(after)
        return if after.all?

        "only changes after #{after.boot ? "boot" : "#{Units.things(after.works, "request")} (or jobs, or tests)"}"
      end
    end
  end
end
