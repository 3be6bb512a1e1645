# frozen_string_literal: true

# Objects from thousands of lines, kept to the end or dropped at once: how large does what follows them grow?
module Programs
  class ManySites
    SITES = 5_000

    SITES.times do |site|
      kept = "kept[from + i] = Object.new\n"
      dropped = "Object.new\n"
      [["keep", kept], ["drop", dropped]].each do |name, line|
        body = "i = 0\nwhile i < count\n#{line}i += 1\nend\n"
        class_eval "def #{name}_#{site}(kept, from, count)\n#{body}end\n", "site_#{site}.rb", 1
      end
    end

    def initialize = @kept = []

    # @param kind [String] "keep" or "drop"
    #: (String, Integer) -> void
    def make(kind, objects)
      @kept = Array.new(kind == "keep" ? objects : 0)
      each = objects / SITES
      SITES.times { |site| public_send(:"#{kind}_#{site}", @kept, site * each, each) }
    end
  end
end
