# frozen_string_literal: true

require "ripper"

# Reads Ruby sources and finds what each file uses: other files, by `require` and by the constants that they define;
# and functions, global variables and words such as "--limit". Runs nothing of the sources.
class RubyLayers
  # A use of another file. to: the files that define the name, or the required file; how: "requires pitwall/show",
  # "names Pitwall::Show::Text".
  Use = Struct.new(:from, :line, :to, :how) do
    def to_s = "#{from}:#{line} #{how} (#{to.first})"
  end

  # What a file contains. defined: full names of modules, classes and constants; methods: names of methods;
  # named: Array of Name; required: [feature, line]; functions: [name, line] of calls without a receiver, of global
  # variables and of backticks; options: [word, line] of strings.
  Source = Struct.new(:path, :defined, :methods, :named, :required, :functions, :options)

  # A constant as written. words: ["Record", "Site"]; nesting: full names of the modules around it, innermost first;
  # absolute: written as ::Record; called: name of the method called on the constant, or nil.
  Name = Struct.new(:words, :nesting, :line, :absolute, :called) do
    def to_s = [words.join("::"), called].compact.join(".")
  end

  # @return [Array<Source>]
  attr_reader :sources

  # @param texts [Hash{String => String}] by path below the repository, e.g. "lib/pitwall/show/text.rb"
  #: (Hash[String, String]) -> void
  def initialize(texts)
    @sources = texts.map { |path, text| SourceReader.new(path, text).source }
    @paths = texts.keys
    @definers = Hash.new { |names, name| names[name] = [] }
    @sources.each { |source| source.defined.each { |name| @definers[name] |= [source.path] } }
  end

  # @return [Array<Use>] uses of other files among the sources
  #: () -> Array[Use]
  def uses = @uses ||= @sources.flat_map { |source| required(source) + named(source) }

  # @return [Array<[Source, Name]>] constants that no file of the sources defines
  #: () -> Array[[Source, Name]]
  def foreign_names
    @sources.flat_map { |source| source.named.reject { |name| resolve(name) }.map { |name| [source, name] } }
  end

  # @return [Array<[Source, String, Integer]>] required features that no file of the sources is, with their lines
  #: () -> Array[[Source, String, Integer]]
  def foreign_features
    @sources.flat_map do |source|
      source.required.reject { |feature, _| file_of(feature) }.map { |feature, line| [source, feature, line] }
    end
  end

  # Uses that the table does not allow. Where several files define a name, one that may be used is enough.
  # @param table [Hash{String => [Array<String>, Array<String>]}] by layer: the beginnings of its paths and the layers
  #   that it uses
  # @yield [use, layer, used] of a forbidden use; true allows it
  #: (Hash[String, [Array[String], Array[String]]]) { (Use, String, String) -> bool } -> Array[String]
  def forbidden(table, &allow)
    uses.filter_map do |use|
      layer = layer_of(table, use.from)
      used = use.to.map { |path| layer_of(table, path) }.uniq
      next if used.any? { |other| other == layer || table.fetch(layer).last.include?(other) }
      next if allow&.call(use, layer, used.first)

      "#{use}: #{layer} does not use #{used.first}"
    end
  end

  # @return [String] the layer with the longest beginning that fits
  # @raise [KeyError] when a path is in no layer
  #: (Hash[String, untyped], String) -> String
  def layer_of(table, path)
    fitting = table.flat_map do |layer, (starts, _)|
      starts.select { |start| path.start_with?(start) }.map { |start| [start.size, layer] }
    end
    fitting.max&.last or raise KeyError, "#{path} is in no layer"
  end

  # Groups of folders that use each other.
  # @yield [path] the folder of a path, or nil for paths that do not count
  #: () { (String) -> String? } -> Array[Array[String]]
  def circles
    below = Hash.new { |folders, folder| folders[folder] = [] }
    uses.each do |use|
      from = yield(use.from)
      to = use.to.map { |path| yield(path) }
      below[from] |= [to.first] if from && to.all? && !to.include?(from)
    end
    reached = below.keys.to_h { |folder| [folder, reachable(below, folder)] }
    groups = reached.select { |folder, others| others.include?(folder) }.map do |folder, others|
      others.select { |other| reached[other]&.include?(folder) }.sort
    end
    groups.uniq
  end

  private

  def reachable(below, folder)
    found = []
    waiting = below.fetch(folder, []).dup
    until waiting.empty?
      other = waiting.pop
      next if found.include?(other)

      found << other
      waiting.concat(below.fetch(other, []))
    end
    found
  end

  def file_of(feature) = ["lib/#{feature}.rb", "#{feature}.rb"].find { |path| @paths.include?(path) }

  def required(source)
    source.required.filter_map do |feature, line|
      path = file_of(feature)
      Use.new(source.path, line, [path], "requires #{feature}") if path && path != source.path
    end
  end

  def named(source)
    source.named.filter_map do |name|
      found = resolve(name) or next
      definers = @definers[found]
      Use.new(source.path, name.line, definers, "names #{found}") unless definers.include?(source.path)
    end
  end

  # As Ruby looks constants up: the first word in the modules around the name, the other words below. The longest known
  # part counts, because the rest may be defined at run time.
  def resolve(name)
    scopes = name.absolute ? [nil] : [*name.nesting, nil]
    scope = scopes.find { |candidate| @definers.key?([candidate, name.words.first].compact.join("::")) }
    words = [*scope, *name.words]
    words.size.downto(scope ? 2 : 1) do |count|
      full = words.first(count).join("::")
      return full if @definers.key?(full)
    end
    nil
  end

  # Makes the Source of one file.
  class SourceReader
    REQUIRES = %w[require require_relative autoload load_gem].freeze
    OPTION = /(?<![\w-])--[a-z][a-z-]+/.freeze
    private_constant :REQUIRES, :OPTION

    attr_reader :source

    def initialize(path, text)
      @source = Source.new(path, [], [], [], [], [], [])
      tree = Ripper.sexp(text) or raise ArgumentError, "#{path} does not parse"
      walk(tree, [])
      Ripper.lex(text).each_cons(2) { |token, following| token(token, following[1]) }
    end

    private

    def token(((line, _), type, text), following)
      @source.functions << [text, line] if %i[on_gvar on_backtick].include?(type)
      return unless type == :on_tstring_content

      text.scan(OPTION) { |word| @source.options << [word, line] }
      @source.options << ["--", line] if text.end_with?("--") && following == :on_embexpr_beg # "--#{name}"
    end

    # @param nesting [Array<String>] innermost first
    def walk(node, nesting)
      return unless node.is_a?(Array)

      case node.first
      when :module, :class then return definition(node, nesting)
      when :def then @source.methods << node[1][1]
      when :assign then assignment(node, nesting)
      when :var_ref, :const_path_ref, :top_const_ref then return if name(node, nesting)
      when :call, :command_call then return walk_all(node.drop(2), nesting) if name(node[1], nesting, node[3])
      when :command then call(node[1], node[2])
      when :method_add_arg then call(node[1][1], node[2]) if node[1].first == :fcall
      when :vcall then call(node[1], nil)
      end
      walk_all(node, nesting)
    end

    def walk_all(nodes, nesting) = nodes.each { |node| walk(node, nesting) }

    def definition(node, nesting)
      words, = path(node[1])
      full = [nesting.first, *words].compact.join("::")
      @source.defined << full
      walk(node[2], nesting) if node.first == :class # the superclass
      walk(node.last, [full, *nesting])
    end

    def assignment(node, nesting)
      words, = path(node[1])
      @source.defined << [nesting.first, *words].compact.join("::") if words
    end

    # @return [Array, nil] nil where the node is no constant
    def name(node, nesting, called = nil)
      words, line, absolute = path(node)
      @source.named << Name.new(words, nesting, line, absolute, called.is_a?(Array) ? called[1] : nil) if words
    end

    def call(identifier, arguments)
      name, line = identifier[1], identifier[2][0]
      @source.functions << [name, line]
      return unless REQUIRES.include?(name)

      feature, = arguments.to_s.scan(/\[:@tstring_content, "([^"]+)"/).last
      return if feature.nil?

      if name == "require_relative"
        feature = File.expand_path(feature, "/#{File.dirname(@source.path)}").delete_prefix("/")
      end
      @source.required << [feature, line]
    end

    # [words, line, absolute?] of a constant; nil where the node is none, or begins with something else.
    def path(node)
      return unless node.is_a?(Array)

      case node.first
      when :@const then [[node[1]], node[2][0], false]
      when :var_ref, :const_ref, :var_field then path(node[1])
      when :top_const_ref, :top_const_field then path(node[1])&.then { |words, line,| [words, line, true] }
      when :const_path_ref, :const_path_field
        words, line, absolute = path(node[1])
        [[*words, node[2][1]], line, absolute] if words
      end
    end
  end
  private_constant :SourceReader
end
