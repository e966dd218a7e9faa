// What a person does to the blocks of a scene, on the project.

export class Blocks {
  constructor(studio) {
    this.studio = studio;
  }

  get list() {
    return this.studio.store.project.scene.blocks;
  }

  edit(change, kind = null) {
    this.studio.store.edit((project) => {
      project.scene.blocks = change(project.scene.blocks);
      // Who blocks a scene out means it: the next take follows its distances, until told otherwise under Film.
      if (project.scene.kind !== 'blocks' && project.follow === 'nothing') project.follow = 'blocks';
      project.scene.kind = 'blocks';
    }, kind);
  }

  /** A block of the usual size, ahead of the camera, beside those that are there. */
  add(kind) {
    const { size } = this.studio.start.blocks.find((usual) => usual.kind === kind);
    const count = this.list.length;
    const right = kind === 'wall' ? 0 : [0, 1.5, -1.5, 2.5, -2.5][count % 5];
    const ahead = kind === 'wall' ? 7 : 3.5 + 0.5 * Math.floor(count / 5);
    const made = { kind, size: [...size], right, ahead, up: 0, turned: 0, moving: [0, 0] };
    if (kind === 'wall') made.size = [10, 3];
    this.edit((blocks) => [...blocks, made]);
    this.studio.shot.selectBlock(this.list.length - 1);
  }

  set(index, changes) {
    this.edit((blocks) => blocks.map((block, i) => (i === index ? { ...block, ...changes } : block)), `block ${index}`);
  }

  copy(index) {
    const block = { ...structuredClone(this.list[index]), right: this.list[index].right + 0.8 };
    this.edit((blocks) => [...blocks, block]);
    this.studio.shot.selectBlock(this.list.length - 1);
  }

  remove(index) {
    this.edit((blocks) => blocks.filter((_, i) => i !== index));
    this.studio.shot.selectBlock(null);
  }
}
