# frozen_string_literal: true

require "open3"
require "tsort"

# Who knows whom among the extension's C files: by #include, and by the symbols that one object file needs and
# another defines.
class CLayers
  # From bottom to top. A file knows files of its own layer and of the layers below. "" is ext/pitwall itself.
  LAYERS = ["tools", "native", "vm", "session", "output", "sampling", "collectors", ""].freeze
  # Below this folder each folder is alone: no collector knows another.
  SEPARATE = "collectors"

  Arrow = Struct.new(:from, :to, :why) do
    def to_s = "#{from} -> #{to} (#{why})"
  end

  # Units: a .c file and the .h file of the same name are one, "output/ring".
  attr_reader :units, :arrows

  #: (String) -> String
  def self.unit(file) = file.delete_suffix(".c").delete_suffix(".h")

  # Of the sources below `ext`, and of the object files in `build`.
  #: (String, String) -> CLayers
  def self.read(ext, build)
    files = Dir.chdir(ext) { Dir["**/*.{c,h}"] }.reject { |file| file.start_with?("launcher/") }
    sources = files.to_h { |file| [file, File.read(File.join(ext, file))] }
    new(sources, symbols(files, build))
  end

  # {"output/ring" => [needed, defined]}
  def self.symbols(files, build)
    files.select { |file| file.end_with?(".c") }.to_h do |file|
      object = File.join(build, "#{File.basename(file, ".c")}.o")
      text, status = Open3.capture2e("nm", "-P", object)
      raise "nm #{object}: #{text}" unless status.success?

      needed, defined = text.lines.map(&:split).partition { |_, type| type.match?(/\A[Uuwv]\z/) }
      [unit(file), [needed.map(&:first), defined.reject { |_, type| type.match?(/\A[a-z]\z/) }.map(&:first)]]
    end
  end

  #: (Hash[String, String], Hash[String, [Array[String], Array[String]]]) -> CLayers
  def initialize(sources, symbols)
    @units = sources.keys.map { |file| CLayers.unit(file) }.uniq.sort
    @unplaced = []
    owner = symbols.flat_map { |unit, (_, defined)| defined.map { |name| [name, unit] } }.to_h
    includes = sources.flat_map do |file, text|
      text.scan(/^\s*#\s*include\s+"([^"]+)"/).flatten.filter_map do |name|
        next Arrow.new(CLayers.unit(file), CLayers.unit(name), "includes #{name}") if sources.key?(name)

        @unplaced << "#{file} includes #{name}, which is no path below ext/pitwall"
        nil
      end
    end
    calls = symbols.flat_map do |unit, (needed, _)|
      needed.filter_map { |name| Arrow.new(unit, owner[name], "needs #{name}") if owner.key?(name) }
    end
    @arrows = (includes + calls).reject { |arrow| arrow.from == arrow.to }.uniq
  end

  #: () -> Array[String]
  def problems = @unplaced + strangers + arrows_up.map(&:to_s) + circles.map { |circle| "circle: #{circle.join(", ")}" }

  # Files in no layer.
  def strangers = units.reject { |unit| layer(unit) }.map { |unit| "#{unit} is in no layer" }

  #: () -> Array[Arrow]
  def arrows_up
    arrows.select do |arrow|
      from, to = layer(arrow.from), layer(arrow.to)
      from && to && (to > from || (from == to && LAYERS[from] == SEPARATE && folder(arrow.from) != folder(arrow.to)))
    end
  end

  # Units that know each other, in one step or many.
  #: () -> Array[Array[String]]
  def circles
    known = arrows.group_by(&:from).transform_values { |list| list.map(&:to).uniq }
    each_unit = ->(&block) { units.each(&block) }
    each_known = ->(unit, &block) { known.fetch(unit, []).each(&block) }
    TSort.strongly_connected_components(each_unit, each_known).select { |component| component.size > 1 }.map(&:sort)
  end

  private

  def folder(unit) = unit.include?("/") ? File.dirname(unit) : ""

  def layer(unit) = LAYERS.index(folder(unit)[%r{\A[^/]*}])
end
